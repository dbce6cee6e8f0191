core_sources += \
	src/codec/codec.c src/codec/codec.h \
	src/codec/fp32.c src/codec/half.c src/codec/block.c src/codec/topk.c src/codec/randk.c \
	src/codec/powersgd.c
