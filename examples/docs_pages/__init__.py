"""Pages of documentation for `docs_audit.py`: `page` what a page consists of, `markdown` and `rst` how it is read,
`links` what is wrong with it, `check` how a verifier sees the same page without any of these."""
