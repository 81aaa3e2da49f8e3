// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Stream;

/** Keeps the records of a package list as objects, and goes through them again and again, in several threads. */
public class Words {
  record Package(String name, List<String> lines, long[] marks) {}

  private static long digest(long sum, String text) {
    for (int i = 0; i < text.length(); i += 7) sum = sum * 31 + text.charAt(i);
    return sum;
  }

  private static long pass(List<Package> all, int number) throws InterruptedException {
    long[] sums = new long[2];
    Thread[] threads = new Thread[sums.length];
    for (int part = 0; part < threads.length; ++part) {
      final int mine = part, from = all.size() / 2 * part, to = part == 0 ? all.size() / 2 : all.size();
      threads[part] = new Thread(() -> {
        for (Package one : all.subList(from, to)) {
          for (String line : one.lines()) sums[mine] = digest(sums[mine], line);
          one.marks()[number % one.marks().length] = sums[mine];
        }
      });
      threads[part].start();
    }
    for (Thread thread : threads) thread.join();
    return sums[0] * 31 + sums[1];
  }

  public static void main(String[] arguments) throws Exception {
    List<Package> all = new ArrayList<>();
    try (Stream<String> lines = Files.lines(Path.of(arguments[0]))) {
      List<String> record = new ArrayList<>();
      for (String line : (Iterable<String>) lines::iterator) {
        if (!line.isEmpty()) {
          record.add(line);
          continue;
        }
        if (!record.isEmpty()) all.add(new Package(record.get(0), record, new long[16]));
        record = new ArrayList<>();
      }
    }
    for (int number = 0; number < Integer.parseInt(arguments[1]); ++number) {
      System.out.println(all.size() + " packages, pass " + number + ": " + pass(all, number));
    }
    TreeMap<Integer, Integer> sizes = new TreeMap<>();
    for (Package one : all) sizes.merge(one.lines().size(), one.name().length(), Integer::sum);
    System.out.println(sizes);
    String nothing = all.isEmpty() ? "" : null;
    try {
      System.out.println(nothing.length());
    } catch (NullPointerException expected) {
      System.out.println("a null pointer is found by its fault");
    }
  }
}
