core_sources += \
	src/schedule/schedule.c src/schedule/schedule.h \
	src/schedule/bucket.c \
	src/schedule/message.c src/schedule/message.h \
	src/schedule/payload.c src/schedule/payload.h \
	src/schedule/view.c src/schedule/view.h \
	src/schedule/group.c src/schedule/group.h \
	src/schedule/allgather.c src/schedule/dense.c src/schedule/hierarchical.c \
	src/schedule/ring.c src/schedule/sra.c
