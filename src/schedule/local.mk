core_sources += \
	src/schedule/schedule.c src/schedule/schedule.h \
	src/schedule/payload.c src/schedule/payload.h \
	src/schedule/sra.c src/schedule/dense.c
