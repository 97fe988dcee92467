//! Sentences about the packets.

use super::anatomy::{Anatomy, Second};
use super::measurements::Measured;
use super::message::HEAD;
use super::published::IN_2008;
use super::variant::{Carrier, Variant, Writing};
use apus_report::result::short;

/// Delayed ACKs per exchange above which they explain the delay of the second piece.
const MANY_DELAYED_ACKS: f64 = 0.5;

/// Least number of packets without payload per exchange that is mentioned.
const WORTH_MENTION: f64 = 0.05;

/// Returns the explanation of each variant, then a summary, then the published figures.
pub(super) fn sentences(measured: &[Measured]) -> Vec<String> {
    let mut sentences: Vec<String> = measured.iter().map(of_variant).collect();
    sentences.extend(of_all(measured));
    sentences.extend(published(measured));
    sentences
}

/// Returns the explanation of a variant: from its packets, or without them from the counters of the
/// kernel.
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
    if anatomy.bare >= WORTH_MENTION {
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

/// Explains a command that left in one piece.
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

/// Explains a command that left in two pieces.
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

/// Returns the number of delayed ACKs that the kernel counted.
fn timers(anatomy: &Anatomy) -> String {
    let Some(counted) = anatomy.counted else { return String::new() };
    format!(
        " (the kernel counted {} such timers in {} exchanges)",
        counted.delayed_acks,
        anatomy.all()
    )
}

/// Explains a variant without its packets, from the counters of the whole kernel while times were
/// taken.
fn of_counters(measured: &Measured) -> String {
    let Some((segments, delayed_acks)) = measured.counted() else {
        return "its packets were not captured.".to_owned();
    };
    let mut text = format!(
        "its packets were not captured, but the kernel counted {} segments and {} delayed ACKs per exchange, including \
         other programs.",
        short(segments),
        short(delayed_acks)
    );
    if delayed_acks > MANY_DELAYED_ACKS {
        text += " So an ACK waits for its timer in each exchange, and the second piece, held in the client by Nagle's \
                 algorithm, waits for that ACK.";
    }
    text
}

/// Returns the effect of splitting on TCP and on apus.
fn of_all(measured: &[Measured]) -> Option<String> {
    let find = |name| measured.iter().find(|each| each.variant.name == name);
    let median = Measured::per_thousand;
    let (whole, split) = (find("tcp whole")?, find("tcp split")?);
    let times = median(split) / median(whole);
    let mut said = format!(
        "Splitting a command makes TCP {} times as slow: {} ms instead of {} ms per thousand exchanges.",
        short(times),
        short(median(split)),
        short(median(whole))
    );
    if let Some((whole, split)) = find("apus whole").zip(find("apus split")) {
        said += &format!(
            " With apus the factor is {}: {} ms instead of {} ms.",
            short(median(split) / median(whole)),
            short(median(split)),
            short(median(whole))
        );
    }
    Some(said)
}

/// Returns the measurements of 2008.
fn published(measured: &[Measured]) -> Option<String> {
    let shown = |name: &str| measured.iter().any(|each| each.variant.name == name);
    let seconds = |name: &str| {
        let found = IN_2008.iter().find(|each| each.variant == name && shown(name));
        found.map(|each| each.per_thousand / 1e3)
    };
    let (whole, split) = (seconds("tcp whole")?, seconds("tcp split")?);
    Some(format!(
        "Published in 2008: {split:.2} s per thousand exchanges split, {whole:.2} s whole, a factor of {}.",
        short(split / whole)
    ))
}

const fn unit(variant: &Variant) -> &'static str {
    match variant.carrier {
        Carrier::Tcp => "segment",
        Carrier::Apus => "packet",
    }
}

/// Returns `2 segments`, `2.25 packets`.
fn counted(number: f64, unit: &str) -> String {
    let number = if number.fract() == 0.0 { format!("{number}") } else { short(number) };
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

/// Returns nanoseconds as `43.9 ms`, `12.3 us`.
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
    use super::super::declaration::sample_findings::measured;
    use super::super::sample_packets::Made::{Client, Server};
    use super::super::sample_packets::{SERVER, apus, stalled, tcp};
    use super::*;

    fn said(name: &str, seen: &super::super::watch::Captured) -> String {
        let expected = seen.packets.iter().filter(|it| it.to == SERVER).count() / 3;
        let anatomy = Anatomy::of(seen, SERVER, expected.min(2));
        of_variant(&measured(name, &[1.0], Ok(anatomy.unwrap())))
    }

    #[test]
    fn waits_of_both_sides_are_explained_in_full() {
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
    fn cures_are_explained_by_their_packets() {
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
    fn without_packets_the_kernels_counters_explain() {
        let mut split = measured("tcp split", &[44_000.0, 45_000.0], Err("no right".to_owned()));
        assert!(of_variant(&split).ends_with("its packets were not captured."));
        for run in split.runs.results_mut() {
            let delayed_acks = run.exchanges;
            run.counted = Some(Counters { delayed_acks, segments: 4 * run.exchanges });
        }
        let said = of_variant(&split);
        assert!(said.contains("4.00 segments and 1.00 delayed ACKs per exchange"), "{said}");
        assert!(said.contains("held in the client by Nagle's"), "{said}");
        split.runs.results_mut().for_each(|run| run.counted = Some(Counters::default()));
        assert!(!of_variant(&split).contains("Nagle"));
    }

    #[test]
    fn the_summary_needs_split_and_whole() {
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
            "Splitting a command makes TCP 2940 times as slow: 44100 ms instead of 15.0 ms per thousand exchanges. With \
             apus the factor is 1.05: 6.30 ms instead of 6.00 ms."
        );
        assert_eq!(
            said[5],
            "Published in 2008: 40.43 s per thousand exchanges split, 1.43 s whole, a factor of 28.3."
        );
        assert_eq!(sentences(&all[1..]).len(), 3, "no variant to compare with");
    }
}
