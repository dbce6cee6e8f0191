train_sources += \
	src/train/csv.c src/train/idx.c src/train/dataset.c src/train/dataset.h \
	src/train/sampler.c src/train/sampler.h \
	src/train/mlp.c src/train/mlp.h \
	src/train/optimizer.c src/train/optimizer.h \
	src/train/meter.c src/train/meter.h src/train/record.h \
	src/train/rundir.c src/train/rundir.h \
	src/train/report.c src/train/report.h src/train/verdict.c \
	src/train/loop.c src/train/train.h

noinst_LTLIBRARIES += libtrain.la
libtrain_la_SOURCES = $(train_sources)
libtrain_la_LIBADD = libcore.la $(BLAS_LIBS)
