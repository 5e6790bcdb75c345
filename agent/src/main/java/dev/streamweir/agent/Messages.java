// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

/**
 * The messages between the agent and its classes in the loader of Kafka Streams, and the keys of the maps in the replies. Both sides compile
 * against this class. The compiler copies its constants, so neither side loads it.
 */
public final class Messages {
    // From the bridge to the agent. The bridge has a method of the same name for each, and the inserted code calls it.

    /** Arguments: the configs of an application. Reply: the configs with the plan injected. */
    public static final String CONFIGS = "configs";
    /** Arguments: a new KafkaStreams object. Also sent on to the loader's classes. */
    public static final String CLIENT_CREATED = "clientCreated";
    /** Arguments: the active and the standby tasks of the calling stream thread. Also sent on to the loader's classes. */
    public static final String TASKS_ASSIGNED = "tasksAssigned";
    /** Arguments: a store that the calling thread has just opened, and its database. Also sent on to the loader's classes. */
    public static final String STORE_OPENED = "storeOpened";
    /** Arguments: a new cache and its capacity in bytes. */
    public static final String CACHE_CREATED = "cacheCreated";
    /** Arguments: reason and text of a finding. */
    public static final String FINDING = "finding";

    // From the loader's classes to the agent.

    /** Reply: the capacity of the shared cache and the limit of its write buffer manager in bytes; null if RocksDB stays unbounded. */
    public static final String BOUNDS = "bounds";
    /** A store is open with the shared cache, or with a known one of the application. */
    public static final String BOUNDS_ACTIVE = "boundsActive";
    /** Arguments: the reason for which a store has neither the shared cache nor a known one. */
    public static final String STORE_NOT_BOUNDED = "storeNotBounded";
    /** Arguments: the failure that kept the shared cache from being created. */
    public static final String BOUNDS_FAILED = "boundsFailed";
    /** Arguments: the number of open stores. Reply: arena block and write buffer of the next store in bytes; 0 keeps the present size. */
    public static final String STORE_SIZES = "storeSizes";
    /** Reply: whether the plan replaces the application's own caches. */
    public static final String REPLACES_CACHES = "replacesCaches";
    /** Arguments: a cache. Reply: its capacity in bytes, 0 if it is unknown. */
    public static final String CAPACITY_OF = "capacityOf";

    // From the agent to the loader's classes.

    /** Reply: the class of the agent's RocksDBConfigSetter. */
    public static final String SETTER_CLASS = "setterClass";
    /** Reply: the list of open KafkaStreams objects. */
    public static final String CLIENTS = "clients";
    /** Reply: a number that grows with each change of clients, their states and their stores. */
    public static final String CHANGES = "changes";
    /** Reply: the RocksDB figures of this loader. */
    public static final String ROCKSDB = "rocksdb";

    // Keys of a client that the report does not contain.

    /** The configs of a client after the injection. */
    public static final String ORIGINALS = "originals";
    /** The omitted parts of the clients, such as "tasks or stores"; only in the first client, and only if any are omitted. */
    public static final String TRUNCATED = "truncated";

    // Keys of the RocksDB figures. The report has the same keys.

    public static final String OPENED = "opened";
    public static final String CLOSED = "closed";
    public static final String CACHE_CAPACITY = "cacheCapacity";
    public static final String CACHE_USAGE = "cacheUsage";
    public static final String CACHE_PINNED = "cachePinned";
    /** A list of maps with {@link #CAPACITY} and {@link #STORES}. */
    public static final String OWN_CACHES = "ownCaches";
    public static final String CAPACITY = "capacity";
    public static final String STORES = "stores";

    private Messages() {}
}
