//! Reading files that are malformed, or of another version.

use apus_trace::{Event, FileError, Record, Trace, recorder};

/// Returns the file of a trace of one record.
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

/// Replaces a text of the head by another text of the same length.
fn replace(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

#[test]
fn a_truncated_file_is_reported_with_its_length() {
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
fn another_kind_of_file_differs_from_a_later_version() {
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
fn a_wrong_number_of_records_does_no_harm() {
    let whole = file();
    for (count, says) in [("9", "cut off"), ("0", "the last record")] {
        let wrong = replace(&whole, r#""records":1"#, &format!(r#""records":{count}"#));
        assert!(error(&wrong).contains(says), "{count}: {}", error(&wrong));
    }
}

#[test]
fn any_wrong_byte_does_no_harm() {
    let whole = file();
    for at in 0..whole.len() {
        for value in [0, 0x20, 0x39, 0x5d, 0x7d, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            // The file may be valid or not; reading it ends without a panic.
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
fn events_are_identified_by_name() {
    // A version with another name of the event.
    let other = replace(&file(), r#""96":"look""#, r#""96":"peek""#);
    let trace = read(&other).unwrap();
    let record = trace.threads[0].records[0];
    assert_eq!((record.event(), trace.name(&record)), (None, "peek"));
    // A version with another number of the event, whose number belongs to another event.
    let other = replace(&file(), r#""96":"look""#, r#""96":"call""#);
    let trace = read(&other).unwrap();
    let record = trace.threads[0].records[0];
    assert_eq!((record.event(), trace.name(&record)), (Some(Event::Call), "call"));
}
