// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agent;

import dev.streamweir.agent.report.Boundedness;
import dev.streamweir.agent.report.Source;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Gives the report access to the agent's components. */
final class ReportSource implements Source {
    private final Components components;

    ReportSource(Components components) {
        this.components = components;
    }

    @Override
    public String version() {
        String version = ReportSource.class.getPackage().getImplementationVersion();
        return version == null ? "" : version;
    }

    @Override
    public String podUid() {
        String uid = System.getenv("STREAMWEIR_POD_UID");
        return uid == null ? "" : uid;
    }

    @Override
    public Boundedness bounded() {
        return components.decision.boundedness();
    }

    @Override
    public Map<String, Object> plan() {
        Plan current = components.planFiles.current();
        Map<String, Object> plan = new HashMap<>();
        plan.put("onDisk", components.planFiles.onDisk());
        plan.put("active", current == null ? "" : current.revision);
        plan.put("source", components.decision.source(current).wireName);
        return plan;
    }

    @Override
    public Map<String, Object> rocksdb() {
        return components.loaders.rocksdb(components.planFiles.current());
    }

    @Override
    public List<Map<String, Object>> clients() {
        return components.loaders.clients();
    }

    @Override
    public Collection<String> injected(Map<?, ?> originals) {
        return Injection.injected(originals.get(ConfigKeys.INJECTED)).keySet();
    }

    @Override
    public List<Map<String, Object>> findings() {
        return components.findings.report();
    }

    @Override
    public void finding(String reason, String message) {
        components.findings.add(reason, message);
    }

    @Override
    public long sequence() {
        return components.changes.sequence();
    }

    @Override
    public void onChange(Runnable listener) {
        components.changes.setListener(listener);
    }

    @Override
    public boolean accepts(String token) {
        return components.token.accepts(token);
    }

    @Override
    public void checkForChanges() {
        boolean planChanged = components.planFiles.checkForChange();
        boolean clientsChanged = components.loaders.checkForChange();
        if (planChanged || clientsChanged) {
            components.changes.announce();
        }
    }
}
