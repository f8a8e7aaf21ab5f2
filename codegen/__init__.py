"""Checked definition → compiled kernel: loop IR, schedule passes and backends."""
