//! What does a reader say of files that are broken, or of another version?

use apus_trace::{Event, FileError, Record, Trace, recorder};

/// A trace of one record, as a file.
fn file() -> Vec<u8> {
    let mut trace = recorder::snapshot();
    trace.threads = vec![apus_trace::Thread {
        name: "a".into(),
        tid: 1,
        cpu: 0,
        overwritten: 0,
        records: vec![Record::of_thread(1, Event::Look, 2, 3)],
    }];
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Trace, FileError> {
    Trace::read(&mut &*bytes)
}

fn error(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

/// Changes a text of the head into another one of the same length.
fn replace(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

#[test]
fn a_file_that_was_cut_off_says_where() {
    let whole = file();
    assert!(read(&whole).is_ok());
    for len in 0..whole.len() {
        let text = error(&whole[..len]);
        let says = match len {
            0 => "not a trace",
            1..16 => "first lines at byte 16",
            _ => "was cut off",
        };
        assert!(text.contains(says), "{len}: {text}");
        assert!(len == 0 || text.contains(&format!("ends at byte {len}")), "{len}: {text}");
    }
    let longer = [whole.as_slice(), &[0; 32]].concat();
    assert!(error(&longer).contains("the last record"), "{}", error(&longer));
}

#[test]
fn another_kind_of_file_and_a_later_layout_are_told_apart() {
    assert_eq!(
        error(b"\x7fELF\x02\x01\x01\0\0\0\0"),
        r#"not a trace of apus: it begins with "\\x7fELF\\x02\\x01\\x01\\x00" instead of "apustt""#
    );
    let mut later = file();
    later[8] = 9;
    assert!(error(&later).contains("has layout 9, this apus reads up to 1"), "{}", error(&later));
    let mut head = file();
    head[16] = b'[';
    assert!(error(&head).starts_with("the head of the trace, bytes 16 to "), "{}", error(&head));
}

#[test]
fn a_head_that_lies_about_the_records_does_no_harm() {
    let whole = file();
    for (count, says) in [("9", "cut off"), ("0", "the last record")] {
        let lie = replace(&whole, r#""records":1"#, &format!(r#""records":{count}"#));
        assert!(error(&lie).contains(says), "{count}: {}", error(&lie));
    }
}

#[test]
fn any_byte_may_be_wrong() {
    let whole = file();
    for at in 0..whole.len() {
        for value in [0, 0x20, 0x39, 0x5d, 0x7d, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            // Whether it can be understood or not: it ends, and does not panic.
            if let Ok(trace) = read(&bytes) {
                for (_, record) in trace.records() {
                    let _ = (trace.name(record), record.fields().count(), record.rpc());
                    let _ = trace.head.clock.realtime(record.ticks);
                }
            }
        }
    }
}

#[test]
fn events_are_known_by_their_names() {
    // A version that calls it something else.
    let other = replace(&file(), r#""96":"look""#, r#""96":"peek""#);
    let trace = read(&other).unwrap();
    let record = trace.threads[0].records[0];
    assert_eq!((record.event(), trace.name(&record)), (None, "peek"));
    // A version that gave it another number, and its number to another event.
    let other = replace(&file(), r#""96":"look""#, r#""96":"call""#);
    let trace = read(&other).unwrap();
    let record = trace.threads[0].records[0];
    assert_eq!((record.event(), trace.name(&record)), (Some(Event::Call), "call"));
}
