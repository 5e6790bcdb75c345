// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inloader;

import org.apache.kafka.streams.state.internals.BlockBasedTableConfigWithAccessibleCache;
import org.rocksdb.Cache;
import org.rocksdb.Options;
import org.rocksdb.TableFormatConfig;

/** The options of a store before the application's own setter. A later difference is a setting of the application. */
final class InitialOptions {
    final Cache cache;
    final long arenaBlock;
    final long writeBuffer;

    InitialOptions(Options options) {
        cache = cacheOf(options.tableFormatConfig());
        arenaBlock = options.arenaBlockSize();
        writeBuffer = options.writeBufferSize();
    }

    /** Returns the cache of a table format; null if it has none or does not give access to it. */
    static Cache cacheOf(TableFormatConfig format) {
        return format instanceof BlockBasedTableConfigWithAccessibleCache
                ? ((BlockBasedTableConfigWithAccessibleCache) format).blockCache()
                : null;
    }
}
