"""How long sums of floats keep their digits.

No accumulator takes more than so many terms in a row: then it is added to a total and begins anew.
A total of many such parts keeps what rounding took from it, and takes it off the next part. So the
error of a sum does not grow with its length.
"""

TERMS = 64
"""Terms that an accumulator takes at most, one after the other. Where all are equal, which is the
worst that occurs, a part is off by up to ``TERMS / 3`` times half a unit in the last place."""
PRODUCTS = 256
"""Likewise, of products, which libraries of linear algebra add up as many of: there is little else
to do in such code, so that parts take time."""
AT_ONCE = 32
"""Products of 16-bit floats that one instruction may add up: they count as one."""
PARTS = 32
"""Parts of a total that are plainly added."""
