# The loops, compiled once per instruction set; select.c picks one at run time.
kernel_sources = kernels/kernels.h kernels/block.h \
	kernels/dense.c kernels/half.c kernels/int8.c kernels/topk.c \
	kernels/fp8.c kernels/int4.c kernels/int2.c kernels/onebit.c \
	kernels/half.h kernels/topk.h kernels/topk_values.h \
	kernels/randk.h kernels/randk.c kernels/factors.c
# They are meant to be vectorised at any -O level that the user chose.
kernel_cflags = $(AM_CFLAGS) $(VECTOR_CFLAGS)

noinst_LTLIBRARIES += libkernels.la libkernels_baseline.la
libkernels_la_SOURCES = kernels/select.c
libkernels_la_LIBADD = libkernels_baseline.la
libkernels_baseline_la_SOURCES = $(kernel_sources)
libkernels_baseline_la_CFLAGS = $(kernel_cflags) -DKERNELS_ISA=baseline

if X86_KERNELS
libkernels_la_CFLAGS = $(AM_CFLAGS) -DHAVE_X86_KERNELS
noinst_LTLIBRARIES += libkernels_avx2.la libkernels_avx512.la
libkernels_la_LIBADD += libkernels_avx2.la libkernels_avx512.la
libkernels_avx2_la_SOURCES = $(kernel_sources)
libkernels_avx2_la_CFLAGS = $(kernel_cflags) $(AVX2_CFLAGS) -DKERNELS_ISA=avx2
libkernels_avx512_la_SOURCES = $(kernel_sources)
libkernels_avx512_la_CFLAGS = $(kernel_cflags) $(AVX512_CFLAGS) -DKERNELS_ISA=avx512
endif
