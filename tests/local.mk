# Unit tests print TAP through cmocka, scripts by tests/lib/tap.sh; automake counts cases.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
TEST_EXTENSIONS = .sh
SH_LOG_COMPILER = bash
if SANITIZERS
sanitizers = yes
else
sanitizers = no
endif
AM_TESTS_ENVIRONMENT = \
	CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	SRCDIR='$(abs_top_srcdir)'; export SRCDIR; \
	BUILDDIR='$(abs_top_builddir)'; export BUILDDIR; \
	CC='$(CC)'; export CC; \
	PUBLIC_CPPFLAGS='-I$(abs_top_srcdir)/include $(MPI_CFLAGS)'; export PUBLIC_CPPFLAGS; \
	SANITIZERS='$(sanitizers)'; export SANITIZERS;

# what every test program links
LDADD = libtrain.la libcore.la $(BLAS_LIBS) $(core_libs) $(CMOCKA_LIBS)

if HAVE_CMOCKA
unit_tests = \
	tests/base/test_base tests/base/test_config \
	tests/codec/test_codecs tests/codec/test_golden tests/codec/test_half tests/codec/test_factors \
	tests/engine/test_plan tests/launcher/test_tensors \
	tests/train/test_data tests/train/test_model
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif

tests_codec_test_codecs_SOURCES = tests/codec/test_codecs.c tests/codec/reference.c \
	tests/codec/reference.h
tests_codec_test_half_SOURCES = tests/codec/test_half.c tests/codec/reference.c \
	tests/codec/reference.h

tests_launcher_test_tensors_SOURCES = tests/launcher/test_tensors.c launcher/bench_tensors.c \
	launcher/bench.h launcher/launcher.h

# programs that run under mpirun, started by the scripts of the same name
check_PROGRAMS += tests/ranks/test_exchange tests/ranks/test_factors tests/ranks/test_faults
if !SANITIZERS
check_PROGRAMS += tests/ranks/test_allocations
endif
tests_ranks_test_exchange_SOURCES = tests/ranks/test_exchange.c tests/ranks/simulate.c \
	tests/ranks/simulate.h tests/ranks/due_bytes.c tests/ranks/due_bytes.h \
	tests/lib/ranks.c tests/lib/ranks.h
tests_ranks_test_factors_SOURCES = tests/ranks/test_factors.c tests/codec/reference.c \
	tests/codec/reference.h tests/ranks/due_bytes.c \
	tests/ranks/due_bytes.h tests/lib/ranks.c tests/lib/ranks.h
tests_ranks_test_faults_SOURCES = tests/ranks/test_faults.c tests/lib/ranks.c tests/lib/ranks.h
tests_ranks_test_allocations_SOURCES = tests/ranks/test_allocations.c tests/lib/allocations.c \
	tests/lib/allocations.h tests/lib/ranks.c tests/lib/ranks.h

# fuzz is made by bench/fuzz alone: it needs clang's libFuzzer
check_PROGRAMS += tests/fuzz/replay
tests_fuzz_replay_SOURCES = tests/fuzz/replay.c tests/fuzz/target.c tests/fuzz/target.h
EXTRA_PROGRAMS = tests/fuzz/fuzz
tests_fuzz_fuzz_SOURCES = tests/fuzz/fuzz.c tests/fuzz/target.c tests/fuzz/target.h
tests_fuzz_fuzz_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
EXTRA_DIST += $(srcdir)/tests/fuzz/corpus

test_scripts = \
	tests/fuzz/replay.sh tests/ranks/exchange.sh tests/ranks/factors.sh tests/ranks/faults.sh \
	tests/ranks/allocations.sh \
	tests/cli/usage.sh tests/cli/config.sh tests/cli/train.sh tests/cli/broken.sh \
	tests/cli/bench.sh \
	tests/lint/layers.sh tests/lint/interface.sh
TESTS += $(test_scripts)
EXTRA_DIST += $(test_scripts) tests/lib/tap.sh tests/lib/unit.h
