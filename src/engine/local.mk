core_sources += \
	src/engine/agree.c src/engine/agree.h \
	src/engine/clip.c src/engine/clip.h \
	src/engine/context.c src/engine/engine.h \
	src/engine/factors.c src/engine/factors.h \
	src/engine/fingerprint.c src/engine/fingerprint.h \
	src/engine/plan.c src/engine/plan.h \
	src/engine/progress.c \
	src/engine/settings.c src/engine/settings.h \
	src/engine/workers.c src/engine/workers.h
