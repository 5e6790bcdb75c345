// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.kafkatest;

import kafka.Kafka;
import kafka.tools.StorageTool;

/** A one-node broker and controller: formats its storage, then serves until the process is terminated. */
public final class Broker {
    private Broker() {}

    /** Takes two arguments: the path of a server.properties file, and the cluster's id. */
    public static void main(String[] args) {
        String[] format = {"format", "--config", args[0], "--cluster-id", args[1]};
        int status = StorageTool.execute(format, System.err);
        if (status != 0) {
            System.exit(status);
        }
        Kafka.main(new String[] {args[0]});
    }
}
