core_sources += src/cluster/cluster.c src/cluster/cluster.h src/cluster/collective.c
