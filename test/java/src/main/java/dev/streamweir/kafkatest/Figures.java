// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.kafkatest;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Predicate;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.ThreadMetadata;

/** Reports the memory and the progress of an instance, with the agent and without: amounts in bytes, times in milliseconds. */
final class Figures implements App.Report {
    private final KafkaStreams streams;
    private final LongAdder processed;
    private final long started = ManagementFactory.getRuntimeMXBean().getStartTime();
    private final List<MemoryPoolMXBean> pools = ManagementFactory.getMemoryPoolMXBeans();
    private final List<BufferPoolMXBean> buffers = ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class);
    private final List<GarbageCollectorMXBean> collectors = ManagementFactory.getGarbageCollectorMXBeans();
    private long running;

    Figures(KafkaStreams streams, LongAdder processed) {
        this.streams = streams;
        this.processed = processed;
    }

    /** The current figures. {@code running} is the time from the start of the JVM to RUNNING. */
    @Override
    public String line(KafkaStreams.State state) {
        int active = 0;
        int standby = 0;
        if (state == KafkaStreams.State.RUNNING) {
            if (running == 0) {
                running = System.currentTimeMillis() - started;
            }
            for (ThreadMetadata thread : streams.metadataForLocalThreads()) {
                active += thread.activeTasks().size();
                standby += thread.standbyTasks().size();
            }
        }
        return "{\"at\":" + System.currentTimeMillis()
                + ",\"state\":\"" + state + "\""
                + ",\"processed\":" + processed.sum()
                + ",\"active\":" + active
                + ",\"standby\":" + standby
                + ",\"heapUsed\":" + ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
                + ",\"metaspace\":" + committed("Metaspace"::equals)
                + ",\"codeCache\":" + committed(name -> name.startsWith("Code"))
                + ",\"direct\":" + direct()
                + ",\"threads\":" + ManagementFactory.getThreadMXBean().getThreadCount()
                + ",\"collecting\":" + collecting()
                + ",\"running\":" + running
                + "}";
    }

    /** The pool Metaspace includes the class space; the code cache is one pool, or three with a common prefix. */
    private long committed(Predicate<String> name) {
        return pools.stream().filter(pool -> name.test(pool.getName())).mapToLong(pool -> pool.getUsage().getCommitted()).sum();
    }

    private long direct() {
        return buffers.stream().filter(pool -> pool.getName().equals("direct")).mapToLong(BufferPoolMXBean::getMemoryUsed).sum();
    }

    private long collecting() {
        return collectors.stream().mapToLong(GarbageCollectorMXBean::getCollectionTime).sum();
    }
}
