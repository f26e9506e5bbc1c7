// CommsTime over JCSP: prefix, sequential delta, successor and consumer, each a process on a thread
// of its own.
//
//     CommsTime SAMPLES PER        prints "ns V V …", ns a communication (a number costs four)

import org.jcsp.lang.CSProcess;
import org.jcsp.lang.Channel;
import org.jcsp.lang.ChannelInputInt;
import org.jcsp.lang.ChannelOutputInt;
import org.jcsp.lang.One2OneChannelInt;
import org.jcsp.lang.Parallel;

public final class CommsTime {
  private static long number(String text) {
    try {
      long n = Long.parseLong(text);
      if (n >= 1) return n;
    } catch (NumberFormatException e) {
      // the message is printed below
    }
    System.err.println("'" + text + "' is not a number of at least 1");
    System.exit(1);
    return 0;
  }

  public static void main(String[] words) {
    if (words.length != 2) {
      System.err.println("usage: CommsTime SAMPLES PER");
      System.exit(1);
    }
    final long samples = number(words[0]), per = number(words[1]);
    final One2OneChannelInt a = Channel.one2oneInt(), b = Channel.one2oneInt(), c = Channel.one2oneInt(), d = Channel.one2oneInt();
    final CSProcess prefix = () -> {
      ChannelInputInt in = c.in();
      ChannelOutputInt out = a.out();
      out.write(0);
      for (;;) out.write(in.read());
    };
    final CSProcess delta = () -> {
      ChannelInputInt in = a.in();
      ChannelOutputInt left = b.out(), right = d.out();
      for (;;) {
        int x = in.read();
        left.write(x);
        right.write(x);
      }
    };
    final CSProcess successor = () -> {
      ChannelInputInt in = b.in();
      ChannelOutputInt out = c.out();
      for (;;) out.write(in.read() + 1);
    };
    final CSProcess consumer = () -> {
      ChannelInputInt in = d.in();
      StringBuilder line = new StringBuilder("ns");
      int expected = 0;
      for (long k = 0; k <= samples; ++k) {
        long start = System.nanoTime();
        for (long i = 0; i < per; ++i) {
          if (in.read() != expected++) {
            System.err.println("commstime: read a wrong number");
            System.exit(1);
          }
        }
        if (k > 0) line.append(' ').append((System.nanoTime() - start) / (4.0 * per)); // stretch 0 warms up
      }
      System.out.println(line);
      System.exit(0); // the others never end
    };
    new Parallel(new CSProcess[] {prefix, delta, successor, consumer}).run();
  }
}
