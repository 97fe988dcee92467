//! Properties of parsing arbitrary bytes as control messages.
//!
//! The fuzz target `control` in `fuzz/` at the root of the repository supplies new inputs, the test
//! supplies the stored ones.

use crate::address::{Family, RawAddress, parse as parse_address};
use crate::cmsg::{Control, Metadata, parse};

/// Asserts that messages are inside the bytes and do not overlap, and that their contents can be
/// used for a send. Then parses the bytes as an address, and asserts that building and parsing it
/// again returns the same.
pub(crate) fn run(bytes: &[u8]) {
    let mut end = bytes.as_ptr();
    for message in parse(bytes) {
        let data = message.data.as_ptr_range();
        assert!(data.start >= end && data.end <= bytes.as_ptr_range().end);
        end = data.end;
    }
    let metadata = Metadata::read(bytes);
    if let Some(to) = metadata.to {
        let mut control = Control::new();
        control.source(to);
        control.traffic_class(metadata.traffic_class, Family::V4);
        let again = Metadata::read(control.as_bytes());
        assert_eq!(again.traffic_class, metadata.traffic_class);
    }
    if let Some(address) = parse_address(bytes) {
        for family in [Family::V4, Family::V6] {
            let Some(raw) = RawAddress::new(address, family) else { continue };
            assert_eq!(parse_address(raw.as_bytes()), Some(address));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::replay::replay;

    #[test]
    fn the_findings_of_the_fuzzer_still_hold() {
        replay("control", super::run);
    }
}
