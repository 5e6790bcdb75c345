// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamweir.agent.report.PlanSource;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import org.junit.jupiter.api.Test;

class BoundsTest {
    private static final long MIB = 1L << 20;

    private static Plan plan(long limit, long heap, long cache, long manager, long arena) {
        Properties properties = new Properties();
        properties.setProperty("limit.bytes", Long.toString(limit));
        properties.setProperty("heap.bytes", Long.toString(heap));
        properties.setProperty("rocksdb.cache.bytes", Long.toString(cache));
        properties.setProperty("rocksdb.write.buffer.manager.bytes", Long.toString(manager));
        properties.setProperty("rocksdb.arena.block.bytes", Long.toString(arena));
        return Plan.of(properties, "");
    }

    @Test
    void appliesThePlanInAProcessWithEnoughMemory() {
        Plan plan = plan(1000 * MIB, 256 * MIB, 300 * MIB, 100 * MIB, 65536);
        for (long limit : new long[] {1000 * MIB, 2000 * MIB}) {
            Bounds bounds = Bounds.of(plan, limit, 256 * MIB);
            assertEquals(PlanSource.PLAN, bounds.source);
            assertEquals(300 * MIB, bounds.cache);
            assertEquals(100 * MIB, bounds.writeBufferManager);
            assertEquals(65536, bounds.arenaBlock(plan, 500));
        }
    }

    @Test
    void reducesTheCacheForASmallerLimitAndALargerHeap() {
        Plan plan = plan(1000 * MIB, 256 * MIB, 300 * MIB, 100 * MIB, 65536);
        Bounds bounds = Bounds.of(plan, 940 * MIB, 346 * MIB); // 60 + 90 MiB less; one byte of cache costs one and a half
        assertEquals(PlanSource.CLAMPED, bounds.source);
        assertEquals(200 * MIB, bounds.cache, MIB);
        assertEquals(bounds.cache / 3, bounds.writeBufferManager, MIB);
        assertEquals(40960, bounds.arenaBlock(plan, 500)); // two thirds of 64 KiB, in steps of 4 KiB
    }

    @Test
    void clampsACacheLargerThanTheProcessForAnyPlannedLimit() {
        for (long plannedLimit : new long[] {1, 1000 * MIB, 1L << 50}) {
            Bounds bounds = Bounds.of(plan(plannedLimit, 256 * MIB, 1L << 50, 1L << 50, 65536), 1000 * MIB, 256 * MIB);
            assertEquals(PlanSource.CLAMPED, bounds.source);
            assertTrue(bounds.cache > 0 && bounds.cache < 744 * MIB, bounds.cache + " for " + plannedLimit);
            assertTrue(bounds.writeBufferManager < bounds.cache, bounds.writeBufferManager + " for " + plannedLimit);
        }
    }

    @Test
    void everyResultIsBounded() {
        Random random = new Random(1);
        for (int i = 0; i < 100_000; i++) {
            long limit = Math.abs(random.nextLong()) >> random.nextInt(63);
            long heap = Math.abs(random.nextLong()) >> random.nextInt(63);
            Plan plan = random.nextBoolean() ? null : plan(amount(random), amount(random), amount(random), amount(random), amount(random));
            Bounds bounds = Bounds.of(plan, limit, heap);
            String input = "limit " + limit + ", heap " + heap;
            assertTrue(bounds.cache > 0 && bounds.writeBufferManager > 0 && bounds.writeBufferManager <= bounds.cache, input);
            assertTrue(plan == null || (bounds.cache <= plan.cache && bounds.writeBufferManager <= plan.writeBufferManager), input);
            long arena = bounds.arenaBlock(plan, random.nextInt(100_000));
            assertTrue(arena >= 16384 && arena <= MIB && arena % 4096 == 0, input);
        }
    }

    private static long amount(Random random) {
        return 1 + (Math.abs(random.nextLong()) >> 13 + random.nextInt(50));
    }

    /** The file has the planner's bootstrap plans, written by agent_test.go: limit, heap, cache. */
    @Test
    void bootstrapBoundsAreAtMostThePlanners() throws IOException {
        List<String> lines = Files.readAllLines(Fixture.path("bootstrap.csv"));
        assertTrue(lines.size() > 10);
        for (String line : lines) {
            String[] planned = line.split(",");
            Bounds bounds = Bounds.of(null, Long.parseLong(planned[0]), Long.parseLong(planned[1]));
            assertTrue(bounds.cache <= Long.parseLong(planned[2]), line + ": " + bounds.cache);
            assertTrue(bounds.cache >= Long.parseLong(planned[2]) * 7 / 10, line + ": " + bounds.cache);
        }
    }

    @Test
    void aFurtherLoaderGetsTheRemainingMemory() {
        long first = Bounds.of(null, 2000 * MIB, 500 * MIB).cache;
        assertEquals(8 * MIB, Bounds.further(first, 2000 * MIB, 500 * MIB).cache);
        assertEquals(first - 100 * MIB, Bounds.further(100 * MIB, 2000 * MIB, 500 * MIB).cache, MIB);
    }
}
