// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.streamweir.agenttest;

import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

/**
 * Two sessions, each in its own class loader, as in application servers: each has its own Kafka Streams and RocksDB.
 *
 * <p>The first argument is "apart" (two loaders, nothing of Kafka on the class path) or "child-first" (one session on the class path, and one in
 * a loader with the same classes). The second is a class path whose entries may be folders with jars. The others are those of {@link Session};
 * the number of the session is appended to application.id and state.dir.
 */
public final class Loaders {
    private Loaders() {}

    /** Runs two sessions, which both execute every command. */
    public static void main(String[] args) throws Exception {
        URL[] urls = urls(args[1]);
        String[] rest = Arrays.copyOfRange(args, 2, args.length);
        boolean apart = args[0].equals("apart");
        ClassLoader first = apart
                ? new URLClassLoader(urls, ClassLoader.getSystemClassLoader().getParent())
                : Loaders.class.getClassLoader();
        ClassLoader second = apart
                ? new URLClassLoader(urls, ClassLoader.getSystemClassLoader().getParent())
                : new ChildFirst(urls, Loaders.class.getClassLoader());
        List<Function<String, String>> sessions = Arrays.asList(open(first, 1, rest), open(second, 2, rest));
        Commands.run(command -> all(sessions, command));
    }

    private static String all(List<Function<String, String>> sessions, String command) {
        List<String> results = new ArrayList<>();
        for (Function<String, String> session : sessions) {
            Thread.currentThread().setContextClassLoader(session.getClass().getClassLoader());
            String result = session.apply(command);
            if (result.startsWith("error")) {
                return result;
            }
            results.add(result);
        }
        return String.join(" | ", results);
    }

    @SuppressWarnings("unchecked")
    private static Function<String, String> open(ClassLoader loader, int number, String[] args) throws Exception {
        String[] own = args.clone();
        for (int i = 0; i < own.length; i++) {
            if (own[i].startsWith("application.id=") || own[i].startsWith("state.dir=")) {
                own[i] += "-" + number;
            }
        }
        Thread.currentThread().setContextClassLoader(loader);
        Class<?> session = Class.forName("dev.streamweir.agenttest.Session", true, loader);
        if (session.getClassLoader() != loader) {
            throw new IllegalStateException(session + " is defined by " + session.getClassLoader() + ", not by " + loader);
        }
        return (Function<String, String>) session.getConstructor(String[].class).newInstance((Object) own);
    }

    private static URL[] urls(String classPath) throws MalformedURLException {
        List<URL> urls = new ArrayList<>();
        for (String entry : classPath.split(File.pathSeparator)) {
            File[] jars = new File(entry).listFiles((folder, name) -> name.endsWith(".jar"));
            if (jars == null || jars.length == 0) {
                urls.add(new File(entry).toURI().toURL());
                continue;
            }
            for (File jar : jars) {
                urls.add(jar.toURI().toURL());
            }
        }
        return urls.toArray(new URL[0]);
    }

    /** Finds its own classes first, as loaders of web applications do. */
    private static final class ChildFirst extends URLClassLoader {
        ChildFirst(URL[] urls, ClassLoader parent) {
            super(urls, parent);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                if (loaded != null) {
                    return loaded;
                }
                try {
                    return findClass(name);
                } catch (ClassNotFoundException e) {
                    return super.loadClass(name, resolve);
                }
            }
        }
    }
}
