bin_PROGRAMS = strait
strait_SOURCES = \
	launcher/launcher.h launcher/common.c launcher/main.c \
	launcher/cmd_train.c launcher/cmd_config.c launcher/cmd_info.c
strait_LDADD = libtrain.la libcore.la $(BLAS_LIBS) $(HWLOC_LIBS) $(core_libs)
