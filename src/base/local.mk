core_sources += \
	src/base/bytes.h src/base/clock.h src/base/random.h \
	src/base/config.c src/base/config.h src/base/config_file.c src/base/config_print.c \
	src/base/error.c src/base/error.h \
	src/base/file.c src/base/file.h \
	src/base/hash.c src/base/hash.h \
	src/base/jsonl.c src/base/jsonl.h \
	src/base/log.c src/base/log.h \
	src/base/options.c \
	src/base/text.c src/base/text.h \
	src/base/value.c \
	src/base/version.c
