dist_man_MANS = docs/strait.1
EXTRA_DIST += docs/architecture.md docs/configuration.md docs/convergence.md docs/dependencies.md \
	docs/metrics.md docs/performance.md docs/wire-format.md

# the page is the option table's own words; a test compares them
update-reference: strait
	./strait config reference >$(srcdir)/docs/configuration.md
.PHONY: update-reference
