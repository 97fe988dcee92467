//! Sentences about the packets.

use super::anatomy::{Anatomy, Second};
use super::measurements::{Measured, per_thousand};
use super::message::HEAD;
use super::published::IN_2008;
use super::{Carrier, Variant, Writing};
use apus_report::result::short;
use apus_report::stats::Spread;

/// Returns what is seen of each variant, and then what it comes to.
pub(super) fn sentences(measured: &[Measured]) -> Vec<String> {
    let mut sentences: Vec<String> = measured.iter().map(of_variant).collect();
    sentences.extend(of_all(measured));
    sentences.extend(published(measured));
    sentences
}

/// Returns what is seen of a variant: in its packets, or without them in what the kernel has counted.
pub(super) fn of_variant(measured: &Measured) -> String {
    let Measured { variant, anatomy, .. } = measured;
    let explained = match anatomy {
        Ok(anatomy) => of_packets(variant, anatomy),
        Err(_) => of_counters(measured),
    };
    format!("{variant} ({}): {explained}", variant.says())
}

fn of_packets(variant: &Variant, anatomy: &Anatomy) -> String {
    let mut said = format!("{} in an exchange", counted(anatomy.packets, unit(variant)));
    if anatomy.bare >= 0.05 {
        said += &format!(", of which {} without payload", short(anatomy.bare));
    }
    said += ". ";
    said += &match &anatomy.second {
        Some(second) => of_second(variant, second, anatomy),
        None => of_one(variant),
    };
    said += &format!(
        " The reply comes {} later, {} after the beginning.",
        time(anatomy.to_reply),
        time(anatomy.total)
    );
    said
}

/// Returns the command leaves in one piece.
fn of_one(variant: &Variant) -> String {
    match (variant.carrier, variant.writing) {
        (Carrier::Apus, Writing::Gather) => {
            "The two slices leave in one DATA packet: a message is whole when it is given, so that nothing has to be \
             guessed about what follows, and no acknowledgement is waited for."
        }
        (Carrier::Apus, _) => "One DATA packet each way; no acknowledgement is waited for.",
        (Carrier::Tcp, Writing::Whole) => {
            "The command leaves in one segment at once, since nothing before it is unacknowledged; the reply carries the \
             acknowledgement with it."
        }
        (Carrier::Tcp, Writing::More) => {
            "The first 4 bytes wait in the socket, as MSG_MORE asks for, and leave with the other 60 in one segment."
        }
        (Carrier::Tcp, Writing::Cork) => {
            "What is written while the socket is corked waits there, and leaves in one segment when TCP_CORK is taken away."
        }
        (Carrier::Tcp, Writing::Gather) => {
            "Both slices come to the socket in one call, and leave in one segment."
        }
        (Carrier::Tcp, _) => "The command left in one segment all the same.",
    }
    .to_owned()
}

/// It leaves in two.
fn of_second(variant: &Variant, second: &Second, anatomy: &Anatomy) -> String {
    let after = time(second.after_first);
    let Some((to_ack, from_ack)) = second.waits.filter(|_| second.is_held()) else {
        let why = match variant.writing {
            Writing::NoDelay => "TCP_NODELAY switches Nagle's algorithm off",
            _ => "Nagle's algorithm did not hold it",
        };
        return format!(
            "The other bytes leave {after} after the first {HEAD}, without an acknowledgement between them: {why}."
        );
    };
    let mut said = format!(
        "The first {HEAD} bytes leave at once, the others {after} later: Nagle's algorithm holds a small segment in the \
         client as long as the one before is not acknowledged. "
    );
    if second.is_ack_delayed() {
        said += &format!(
            "The server acknowledges after {}: {HEAD} bytes are no command, so it has no reply, and delays its ACK to send \
             it with one, until a timer ends that{}. {} after the ACK the other bytes leave. So each waits for the \
             other.",
            time(to_ack),
            timers(anatomy),
            time(from_ack)
        );
    } else {
        said += &format!(
            "But the ACK comes after {}, not after the timer of a delayed ACK, and {} after it the other bytes leave.",
            time(to_ack),
            time(from_ack)
        );
    }
    said
}

/// Returns that the kernel has counted delayed ACKs, too.
fn timers(anatomy: &Anatomy) -> String {
    let Some(counted) = anatomy.counted else { return String::new() };
    format!(
        " (the kernel counted {} such timers in {} exchanges)",
        counted.delayed_acks,
        anatomy.all()
    )
}

/// Without packets: what the kernel of the whole machine has counted while times were taken.
fn of_counters(measured: &Measured) -> String {
    let exchanges: u64 = measured.runs.iter().map(|run| run.exchanges).sum();
    let each = |count: u64| count as f64 / exchanges.max(1) as f64;
    let counted: Option<Vec<_>> = measured.runs.iter().map(|run| run.counted).collect();
    let Some(counted) = counted.filter(|_| measured.variant.carrier == Carrier::Tcp) else {
        return "its packets were not seen.".to_owned();
    };
    let segments = each(counted.iter().map(|each| each.segments).sum());
    let delayed = each(counted.iter().map(|each| each.delayed_acks).sum());
    let mut said = format!(
        "its packets were not seen, but the kernel counted {} segments and {} delayed ACKs for each exchange, those of \
         other programs among them.",
        short(segments),
        short(delayed)
    );
    if delayed > 0.5 {
        said += " So an ACK waits for its timer in each; and what waits for the ACK is the second piece, which Nagle's \
                 algorithm holds in the client.";
    }
    said
}

/// Returns how much of it is waiting.
fn of_all(measured: &[Measured]) -> Option<String> {
    let find = |name| measured.iter().find(|each| each.variant.name == name);
    let median = |each: &Measured| Spread::over(&per_thousand(each)).median;
    let (whole, split) = (find("tcp whole")?, find("tcp split")?);
    let times = median(split) / median(whole);
    let mut said = format!(
        "Splitting a command makes TCP {} times as slow: {} ms for a thousand exchanges in place of {}.",
        short(times),
        short(median(split)),
        short(median(whole))
    );
    if let Some((whole, split)) = find("apus whole").zip(find("apus split")) {
        said += &format!(
            " With apus it is {} times: {} ms and {}.",
            short(median(split) / median(whole)),
            short(median(split)),
            short(median(whole))
        );
    }
    Some(said)
}

/// Returns what was measured in 2008.
fn published(measured: &[Measured]) -> Option<String> {
    let shown = |name: &str| measured.iter().any(|each| each.variant.name == name);
    let seconds = |name: &str| {
        let found = IN_2008.iter().find(|each| each.variant == name && shown(name));
        found.map(|each| each.per_thousand / 1e3)
    };
    let (whole, split) = (seconds("tcp whole")?, seconds("tcp split")?);
    Some(format!(
        "Published in 2008: {split:.2} s for a thousand exchanges split, {whole:.2} s whole, {} times.",
        short(split / whole)
    ))
}

const fn unit(variant: &Variant) -> &'static str {
    match variant.carrier {
        Carrier::Tcp => "segment",
        Carrier::Apus => "packet",
    }
}

/// `2 segments`, `2.25 packets`.
fn counted(number: f64, unit: &str) -> String {
    let number = if number.fract() == 0.0 { format!("{number}") } else { short(number) };
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

/// `43.9 ms`, `12.3 us`, of nanoseconds.
pub(super) fn time(nanoseconds: u64) -> String {
    let micros = nanoseconds as f64 / 1e3;
    if micros >= 1e3 {
        format!("{} ms", short(micros / 1e3))
    } else {
        format!("{} us", short(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::super::counters::Counters;
    use super::super::findings::sample_findings::measured;
    use super::super::sample_packets::Made::{Client, Server};
    use super::super::sample_packets::{SERVER, apus, stalled, tcp};
    use super::*;

    fn said(name: &str, seen: &super::super::watch::Captured) -> String {
        let expected = seen.packets.iter().filter(|it| it.to == SERVER).count() / 3;
        let anatomy = Anatomy::of(seen, SERVER, expected.min(2));
        of_variant(&measured(name, &[1.0], Ok(anatomy.unwrap())))
    }

    #[test]
    fn who_waited_for_whom_is_told_in_full() {
        assert_eq!(
            said("tcp split", &tcp(&vec![stalled(44_000); 3])),
            "tcp split (a send of 4 bytes and one of 60): 4 segments in an exchange, of which 1.00 without payload. The \
             first 4 bytes leave at once, the others 44.0 ms later: Nagle's algorithm holds a small segment in the client \
             as long as the one before is not acknowledged. The server acknowledges after 44.0 ms: 4 bytes are no command, \
             so it has no reply, and delays its ACK to send it with one, until a timer ends that (the kernel counted 3 \
             such timers in 4 exchanges). 6.00 us after the ACK the other bytes leave. So each waits for the other. The \
             reply comes 9.00 us later, 44.0 ms after the beginning."
        );
    }

    #[test]
    fn cures_are_told_by_what_was_seen() {
        let free = tcp(&vec![vec![Client(10, 4), Client(3, 60), Server(9, 64)]; 3]);
        let nodelay = said("tcp split+nodelay", &free);
        assert!(
            nodelay.contains("without an acknowledgement between them: TCP_NODELAY switches"),
            "{nodelay}"
        );
        let split = said("tcp split", &free);
        assert!(split.contains("Nagle's algorithm did not hold it."), "{split}");
        let quick = said("tcp split+quickack", &tcp(&vec![stalled(7); 3]));
        assert!(quick.contains("But the ACK comes after 7.00 us, not after the timer"), "{quick}");
        let whole = tcp(&vec![vec![Client(10, 64), Server(9, 64)]; 3]);
        for (name, expected) in [
            ("tcp whole", "in one segment at once"),
            ("tcp split+more", "as MSG_MORE asks for"),
            ("tcp split+cork", "when TCP_CORK is taken away"),
            ("tcp gather", "Both slices"),
            ("tcp split", "in one segment all the same"),
        ] {
            let said = said(name, &whole);
            assert!(
                said.contains("2 segments in an exchange. ") && said.contains(expected),
                "{said}"
            );
        }
        let split = said("apus split", &apus(5));
        assert!(split.contains("2.25 packets") && split.contains("in one DATA packet"), "{split}");
    }

    #[test]
    fn without_packets_the_kernels_counters_have_to_do() {
        let mut split = measured("tcp split", &[44_000.0, 45_000.0], Err("no right".to_owned()));
        assert!(of_variant(&split).ends_with("its packets were not seen."));
        for run in &mut split.runs {
            let delayed_acks = run.exchanges;
            run.counted = Some(Counters { delayed_acks, segments: 4 * run.exchanges });
        }
        let said = of_variant(&split);
        assert!(said.contains("4.00 segments and 1.00 delayed ACKs for each exchange"), "{said}");
        assert!(said.contains("Nagle's algorithm holds"), "{said}");
        split.runs.iter_mut().for_each(|run| run.counted = Some(Counters::default()));
        assert!(!of_variant(&split).contains("Nagle"));
    }

    #[test]
    fn what_it_comes_to_is_told_if_both_were_measured() {
        let each = |name, ms| measured(name, &[ms], Err(String::new()));
        let all = [
            each("tcp whole", 15.0),
            each("tcp split", 44_100.0),
            each("apus whole", 6.0),
            each("apus split", 6.3),
        ];
        let said = sentences(&all);
        assert_eq!(
            said[4],
            "Splitting a command makes TCP 2940 times as slow: 44100 ms for a thousand exchanges in place of 15.0. With \
             apus it is 1.05 times: 6.30 ms and 6.00."
        );
        assert_eq!(
            said[5],
            "Published in 2008: 40.43 s for a thousand exchanges split, 1.43 s whole, 28.3 times."
        );
        assert_eq!(sentences(&all[1..]).len(), 3, "nothing to be held against");
    }
}
