core_sources += src/device/device.h src/device/host.c
