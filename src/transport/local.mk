core_sources += \
	src/transport/transport.c src/transport/transport.h \
	src/transport/mpi.c src/transport/ucx.c
