//! Reads whole texts and checks the samples of each thread, with their weights and depths.

use std::collections::BTreeMap;

use super::*;

fn read_text(text: &str) -> Profile {
    assert!(is_perf_script(text, true), "not recognised: {text}");
    read(text, text.as_bytes(), &mut |_| {})
}

/// The number of samples and the weight of each thread.
fn by_name(profile: &Profile) -> BTreeMap<&str, (u64, u64)> {
    let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for sample in profile.samples() {
        let of = found.entry(profile.thread(sample.thread).name).or_default();
        *of = (of.0 + u64::from(sample.count), of.1 + sample.weight);
    }
    found
}

fn depths(profile: &Profile) -> Vec<usize> {
    profile.samples().iter().map(|sample| profile.stack(sample.stack).count()).collect()
}

#[test]
fn no_sample_and_no_weight_is_lost() {
    let profile = read_text(
        "\
# hostname : zvm
z_rd_int   316/317 [001] 10.5:  100 cpu-clock:ppp:
\tffffffffc0a88b8d kfpu_end+0x1d ([icp])
\tffffffffc0a7825e aes_encrypt_block+0x4e ([icp])

:-1 -1 [000] 10.6: 100 cpu-clock:ppp:

swapper 0 [000] 10.7: 100 cpu-clock:ppp:
\tffffffff845 [unknown] ([kernel.kallsyms])
cut off and stran",
    );
    assert_eq!((profile.view().count(), profile.view().weight()), (3, 300));
    assert_eq!(profile.busy().weight(), 200);
    assert_eq!(profile.meta.without_stack, 1);
    assert_eq!(profile.meta.unit, WeightUnit::Nanoseconds);
    assert_eq!(profile.meta.host.as_deref(), Some("zvm"));
    assert_eq!(profile.meta.duration_ns, Some(200_000_000));
    let top = profile.busy().self_by_symbol();
    assert_eq!((&*top[0].symbol, top[0].module), ("kfpu_end", "[icp]"));
    let note = "1 line was not understood; the first is line 10: \"cut off and stran\"";
    assert_eq!(profile.meta.notes, [note]);
    assert_eq!(profile.meta.unresolved[0].addresses, 1);
}

#[test]
fn programs_with_names_like_addresses_keep_their_samples() {
    let names = ["dd", "bc", "ed", "cc1", "f", "1234", "deadbeef0", "#!a", "a b", "[dd]", "dd:1"];
    let line = |name: &str, at: usize, rest: &str| {
        format!("{name:>16}  95{at:02} [001] 18490.{at:06}:     250000 cpu-clock: {rest}\n")
    };
    let rest = " ffffffff81000010 copy_user ([kernel.kallsyms])";
    let alone: String = names.iter().enumerate().map(|(at, name)| line(name, at, rest)).collect();
    let stack = "\n\tffffffff81000010 copy_user+0x1 ([kernel.kallsyms])\n\t 4004f0 main (/b/cc1)\n";
    let paragraphs: String = names
        .iter()
        .enumerate()
        .map(|(at, name)| line(name, at, stack).trim_start().to_owned() + "\n")
        .collect();
    // The text after a mail program or a forum has changed its tabs.
    let spaces = paragraphs.replace('\t', "        ");
    let no_blanks = paragraphs.replace("\n\n\n", "\n").replace("\n\n", "\n");
    for (text, depth) in [(&alone, 1), (&paragraphs, 2), (&spaces, 2), (&no_blanks, 2)] {
        let text = text.replace("\n\n\t", "\n\t").replace("\n\n        ", "\n        ");
        let profile = read_text(&text);
        let found = by_name(&profile);
        for name in names {
            assert_eq!(found.get(name), Some(&(1, 250_000)), "{name} of {found:?} in\n{text}");
        }
        assert_eq!(found.len(), names.len());
        assert!(depths(&profile).iter().all(|found| *found == depth), "{text}");
        assert!(profile.meta.notes.is_empty(), "{:?}", profile.meta.notes);
    }
}

/// Each choice of fields, with the weight of a sample.
#[test]
fn every_choice_of_fields_counts_each_sample_once() {
    let heads: [(&str, u64, &str); 16] = [
        ("dd  9566 [001] 18490.191157:     250000 cpu-clock: ", 250_000, "dd"),
        ("dd  9566/9566  [001] 18490.191157789: cpu-clock:ppp: ", 1, "dd"),
        ("dd  9566 [001]     250000 cpu-clock: ", 250_000, "dd"),
        ("dd  9566 [001] K     cpu-clock: ", 1, "dd"),
        ("dd  9566 18490.191157: ", 1, "dd"),
        ("dd  9566 18490.191157:     250000 ", 250_000, "dd"),
        ("dd 18490.191157:     250000 cpu-clock: ", 250_000, "dd"),
        ("   9566 [001] 18490.191157: cpu-clock: ", 1, ":9566"),
        ("18490.191157:     250000 cpu-clock: ", 250_000, ":-1"),
        ("dd  9566 cpu-clock:", 1, "dd"),
        ("dd     250000 cpu-clock: ", 250_000, "dd"),
        ("dd  9566/9566      250000 cpu-clock: ", 250_000, "dd"),
        ("    250000 cpu-clock: ", 250_000, ":-1"),
        ("dd cpu-clock: ", 1, "dd"),
        ("dd  9566 ", 1, "dd"),
        ("dd ", 1, "dd"),
    ];
    for (head, weight, name) in heads {
        let sample = format!(
            "{head}\n\tffffffff81000010 copy_user ([kernel.kallsyms])\n\
             \t7f1000000010 [unknown] (/x)\n\n"
        );
        let profile = read_text(&sample.repeat(4));
        assert_eq!(by_name(&profile), [(name, (4, 4 * weight))].into(), "{head}");
        assert_eq!(depths(&profile), [2; 4], "{head}");
        assert!(profile.meta.notes.is_empty(), "{head}: {:?}", profile.meta.notes);
    }
    for (head, weight, name) in heads {
        let is_named = head.trim_start().starts_with("dd");
        let head = if is_named { format!("{:>16} {}", "dd", &head[3..]) } else { head.to_owned() };
        if head.trim() == "dd" || head.trim().ends_with("9566") {
            continue;
        }
        let line = format!("{head}      7f1000000010 main (/usr/libexec/cc1)\n");
        let profile = read_text(&line.repeat(4));
        assert_eq!(by_name(&profile), [(name, (4, 4 * weight))].into(), "{line}");
        assert_eq!(depths(&profile), [1; 4], "{line}");
    }
}

#[test]
fn stacks_without_a_thread_are_samples() {
    let stack = "\n\tffffffff81000010 copy_user+0x1 ([kernel.kallsyms])\n\t4004f0 main (/b)\n\n";
    let profile = read_text(&stack.repeat(3));
    assert_eq!(by_name(&profile), [(":-1", (3, 3))].into());
    assert_eq!(depths(&profile), [2; 3]);
}

#[test]
fn a_line_with_a_missing_field_is_a_sample_too() {
    let profile = read_text(
        "\
dd  9566 [001] 1.5:     250000 cpu-clock: \n\tffff800000000010 f ([k])\n
dd  9566     250000 cpu-clock: \n\tffff800000000010 f ([k])\n
bc 1.7:     250000 cpu-clock: \n\tffff800000000010 f ([k])\n
  9570 [001] 1.8:     250000 cpu-clock: \n\tffff800000000010 f ([k])\n
",
    );
    let expected = [(":9570", (1, 250_000)), ("bc", (1, 250_000)), ("dd", (2, 500_000))];
    assert_eq!(by_name(&profile), expected.into());
    assert!(profile.meta.notes.is_empty(), "{:?}", profile.meta.notes);
}

#[test]
fn without_thread_numbers_a_number_is_part_of_the_name() {
    let line = |name: &str| format!("{name} 18490.191157: cpu-clock: \n\t7f1000000010 f (/x)\n\n");
    let profile = read_text(&(line("worker 1") + &line("worker 2") + &line("main") + &line("dd")));
    let expected = [("dd", (1, 1)), ("main", (1, 1)), ("worker 1", (1, 1)), ("worker 2", (1, 1))];
    assert_eq!(by_name(&profile), expected.into());
}

#[test]
fn other_events_are_counted_by_name_without_modifiers() {
    let line = |event: &str| format!("dd  7 [001] 1.5:  10 {event}: \n\t7f1000000010 f (/x)\n\n");
    let text = line("cpu_core/cycles/P").repeat(3)
        + &line("cpu_atom/cycles/P")
        + &line("instructions:u")
        + &line("cycles:k");
    let profile = read_text(&text);
    assert_eq!(by_name(&profile), [("dd", (5, 50))].into());
    assert_eq!(profile.meta.event, "cycles");
    assert_eq!(
        profile.meta.notes,
        [
            "these events measure the same and are one: 1 sample (16.7% of all) of the event \
             cpu_atom/cycles/P, 3 samples (50.0% of all) of the event cpu_core/cycles/P, 1 sample \
             (16.7% of all) of the event cycles:k",
            "left out: 1 sample (16.7% of all) of the event instructions:u; those of cycles are \
             shown",
        ]
    );
}

#[test]
fn other_records_are_not_samples_and_lost_samples_are_counted() {
    let profile = read_text(
        "\
dd  7/7  [001] 1.1: PERF_RECORD_COMM exec: dd:7/7
dd  7/7  [001] 1.2:  10 cpu-clock: \n\t7f1000000010 f (/x)\n
dd  7/7  [001] 1.3: PERF_RECORD_LOST lost 12
 0/0  [001] 1.3: PERF_RECORD_LOST_SAMPLES lost 3
dd  7/7  [001] 1.4: PERF_RECORD_FORK(8:8):(7:7)
bc  8/8  [001] 1.5:  10 cpu-clock: \n\t7f1000000010 f (/x)\n
",
    );
    assert_eq!(by_name(&profile), [("bc", (1, 10)), ("dd", (1, 10))].into());
    assert_eq!(profile.meta.lost_samples, 15);
    assert!(profile.meta.notes.is_empty(), "{:?}", profile.meta.notes);
}

#[test]
fn source_lines_and_flags_are_skipped() {
    let profile = read_text(
        "\
  dd  7 [001] 1.1:  10 cpu-clock:   call      7f1000000010 f (/x)
  main.c:12
  memset.S:151 (discriminator 2)
  read_zero+7
  dd  7 [001] 1.2:  10 cpu-clock:  7ffd12345678     7f1000000010 f (/x)
",
    );
    assert_eq!(by_name(&profile), [("dd", (2, 20))].into());
    assert_eq!(depths(&profile), [1, 1]);
    assert_eq!(profile.view().self_by_symbol()[0].symbol, "f");
    assert!(profile.meta.notes.is_empty(), "{:?}", profile.meta.notes);
}

#[test]
fn other_texts_are_not_recognised() {
    for text in [
        "the quick brown fox\n",
        "key: value\nother: 12\n",
        "main;f;g 12\nmain;f;h 3\n",
        "ffffff0007a0bc40 SLEEP CV 5\n                 swtch+0x147\n",
        "stack pointer for thread ffffff0007a0bc40: f\n  ffffff0007a0b9f0 swtch+0x147()\n",
        "[  100.123456] BUG: soft lockup\n[  100.123457] Call Trace:\n",
        "10.5: something happened\n10.6: something else\n",
        "txg birth state\n4120011 812300000000 C 0 12288\n4120012 812301211000 C 0 12288\n",
        "thread 12 main:\nthread 13 worker:\nthread 14 logger:\n",
    ] {
        assert!(!is_perf_script(text, true), "{text}");
    }
}
