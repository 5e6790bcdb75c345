// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

/** The configs of Kafka Streams under which the agent injects its own values. The classes in the loader of Kafka Streams copy the constants. */
public final class ConfigKeys {
    /** The config of the {@code RocksDBConfigSetter}. */
    public static final String SETTER = "rocksdb.config.setter";
    /** The application's own setter, when the agent's setter takes its place and delegates to it. */
    public static final String OWN_SETTER = "streamweir.own.rocksdb.config.setter";
    /**
     * The injected configs, as {@code name=value,...}. A second pass over the same map first removes exactly these, so that values of the plan
     * never count as the application's.
     */
    public static final String INJECTED = "streamweir.injected";

    private ConfigKeys() {}
}
