// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Records KEYS: a HashMap of records, and skewed look-ups that change every eighth.
import java.util.HashMap;
import java.util.Map;

public final class Records {
  private static final class Entry {
    long number;
    final String text;

    Entry(long number, String text) {
      this.number = number;
      this.text = text;
    }
  }

  public static void main(String[] arguments) {
    int keys = Integer.parseInt(arguments[0]);
    int rounds = Integer.parseInt(arguments[1]);
    Map<Integer, Entry> records = new HashMap<>();
    for (int i = 0; i < keys; i++) {
      records.put(i, new Entry(i, "record " + i));
    }
    long state = 1;
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
      state = (state * 1103515245L + 12345) & 0x7fffffffL;
      long u = (state >> 8) & 0xfffff;
      int at = (int) ((((u * u >> 20) * u >> 20) * keys) >> 20);
      Entry entry = records.get((int) ((long) at * 7919 % keys));
      if (i % 8 == 0) {
        entry.number++;
      }
      sum += entry.number + entry.text.length();
    }
    System.out.println(records.size() + " " + sum);
  }
}
