// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent.inside;

import org.rocksdb.Cache;
import org.rocksdb.Options;
import org.rocksdb.TableFormatConfig;
import org.apache.kafka.streams.state.internals.BlockBasedTableConfigWithAccessibleCache;

/** What the options of a store were before the application's own setter saw them: what differs afterwards is the application's. */
final class Sizes {
    final Cache cache;
    final long arenaBlock;
    final long writeBuffer;

    Sizes(Options options) {
        cache = cacheOf(options.tableFormatConfig());
        arenaBlock = options.arenaBlockSize();
        writeBuffer = options.writeBufferSize();
    }

    /** The cache of a table format; null where it has none that can be seen. */
    static Cache cacheOf(TableFormatConfig format) {
        return format instanceof BlockBasedTableConfigWithAccessibleCache
                ? ((BlockBasedTableConfigWithAccessibleCache) format).blockCache()
                : null;
    }
}
