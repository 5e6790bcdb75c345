// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

import dev.streamweir.agent.asm.ClassReader;
import dev.streamweir.agent.asm.ClassWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Enumeration;
import java.util.zip.Deflater;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * Copies a jar without the line numbers and variable names of ASM, a third of the whole. Those of the agent stay. The entries keep their order
 * and their times, so that the same jar gives the same bytes. Used by ../../build.sh: java -cp IN Strip.java IN OUT.
 */
final class Strip {
    private Strip() {}

    public static void main(String[] arguments) throws IOException {
        try (ZipFile in = new ZipFile(arguments[0]); ZipOutputStream out = new ZipOutputStream(Files.newOutputStream(Path.of(arguments[1])))) {
            out.setLevel(Deflater.BEST_COMPRESSION);
            for (Enumeration<? extends ZipEntry> entries = in.entries(); entries.hasMoreElements(); ) {
                ZipEntry entry = entries.nextElement();
                if (entry.isDirectory()) {
                    continue;
                }
                byte[] bytes = in.getInputStream(entry).readAllBytes();
                if (entry.getName().startsWith("dev/streamweir/agent/asm/")) {
                    ClassWriter writer = new ClassWriter(0);
                    new ClassReader(bytes).accept(writer, ClassReader.SKIP_DEBUG);
                    bytes = writer.toByteArray();
                }
                ZipEntry copy = new ZipEntry(entry.getName());
                copy.setTimeLocal(entry.getTimeLocal());
                out.putNextEntry(copy);
                out.write(bytes);
                out.closeEntry();
            }
        }
    }
}
