bin_PROGRAMS = strait
strait_SOURCES = \
	launcher/launcher.h launcher/common.c launcher/main.c \
	launcher/cmd_train.c launcher/cmd_config.c launcher/cmd_info.c \
	launcher/cmd_bench.c launcher/bench.h launcher/bench_options.c launcher/bench_table.c \
	launcher/bench_allreduce.c launcher/bench_variant.c launcher/bench_variant.h \
	launcher/bench_tensors.c launcher/bench_memory.c launcher/bench_link.c \
	launcher/bench_codec.c launcher/bench_p2p.c
strait_LDADD = libtrain.la libcore.la $(BLAS_LIBS) $(HWLOC_LIBS) $(core_libs)
