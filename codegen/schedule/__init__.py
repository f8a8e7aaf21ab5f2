"""From a def, options and a device to loops: the choices, and the passes that apply them."""
