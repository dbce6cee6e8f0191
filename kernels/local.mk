noinst_LTLIBRARIES += libkernels.la
# Loops here are meant to be vectorised at any -O level that the user chose.
libkernels_la_CFLAGS = $(AM_CFLAGS) $(VECTOR_CFLAGS)
libkernels_la_SOURCES = \
	kernels/kernels.h \
	kernels/dense.c kernels/half.c kernels/int8.c kernels/topk.c
