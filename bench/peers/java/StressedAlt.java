// StressedAlt over JCSP: one reader selects fairly over N channels, and at each of them one writer
// writes for ever. Every process is a thread.
//
//     StressedAlt N SAMPLES PER        prints "ns V V …", ns a select

import org.jcsp.lang.Alternative;
import org.jcsp.lang.AltingChannelInputInt;
import org.jcsp.lang.CSProcess;
import org.jcsp.lang.Channel;
import org.jcsp.lang.ChannelOutputInt;
import org.jcsp.lang.Guard;
import org.jcsp.lang.One2OneChannelInt;
import org.jcsp.lang.Parallel;

public final class StressedAlt {
  private static int number(String text) {
    try {
      int n = Integer.parseInt(text);
      if (n >= 1) return n;
    } catch (NumberFormatException e) {
      // the message is printed below
    }
    System.err.println("'" + text + "' is not a number of at least 1");
    System.exit(1);
    return 0;
  }

  private static void fail(String why) {
    System.err.println("stressedalt: " + why);
    System.exit(1);
  }

  public static void main(String[] words) {
    if (words.length != 3) {
      System.err.println("usage: StressedAlt N SAMPLES PER");
      System.exit(1);
    }
    final int n = number(words[0]), samples = number(words[1]), per = number(words[2]);
    final AltingChannelInputInt[] in = new AltingChannelInputInt[n];
    final CSProcess[] all = new CSProcess[n + 1];
    for (int i = 0; i < n; ++i) {
      final One2OneChannelInt c = Channel.one2oneInt();
      final ChannelOutputInt out = c.out();
      final int mark = i;
      in[i] = c.in();
      all[i] = () -> {
        for (;;) out.write(mark);
      };
    }
    all[n] = () -> {
      final Alternative alternative = new Alternative((Guard[]) in);
      final long[] taken = new long[n];
      final StringBuilder line = new StringBuilder("ns");
      for (int k = 0; k <= samples; ++k) {
        final long start = System.nanoTime();
        for (int i = 0; i < per; ++i) {
          final int chosen = alternative.fairSelect();
          if (in[chosen].read() != chosen) fail("a wrong value");
          ++taken[chosen];
        }
        if (k > 0) line.append(' ').append((System.nanoTime() - start) / (double) per); // stretch 0 warms up
      }
      for (long t : taken)
        if (t == 0) fail("a writer was never served");
      System.out.println(line);
      System.exit(0); // the writers never end
    };
    new Parallel(all).run();
  }
}
