//! Invariants of the decoder for arbitrary bytes, shared by the tests and the fuzz target.

use apus_decode::{Decoder, Links, PacketFilter, Summary, json};

/// Checks that decoding does not panic (DECODER-1), and that notes and RPCs are consistent.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(mut decoder) = Decoder::open(std::io::Cursor::new(bytes.to_vec()), &[4000]) else {
        return;
    };
    let (mut summary, mut last, mut errors) = (Summary::default(), 0, 0);
    while let Some(next) = decoder.next() {
        let Ok(packet) = next else {
            errors += 1;
            continue;
        };
        assert!(packet.number >= last && (1..=packet.part.1).contains(&packet.part.0));
        last = packet.number;
        assert!(PacketFilter::default().matches(&packet));
        summary.add(&packet);
        let links = packet.note.map_or_else(Links::default, |note| {
            let rpc = &decoder.rpcs()[note.rpc.0];
            let message = rpc.message(note.message_kind);
            assert!(message.length.is_none_or(|length| message.seen() <= length.into()));
            assert!(note.granted == 0 || message.limit > 0);
            rpc.links(note.message_kind, packet.number)
        });
        let object = json::packet(&packet, links);
        assert_eq!(object["words"], packet.describe(links).to_string());
    }
    assert!(errors <= 1, "nothing comes after an error");
    assert_eq!(summary.packets(), summary.types().map(|(_, each)| each.packets).sum::<u64>());
    for rpc in decoder.rpcs() {
        assert!(json::rpc(rpc).is_object());
    }
    assert!(summary.completion_times(decoder.rpcs()).is_none_or(|times| times.p50 <= times.max));
}
