//! Properties of arbitrary bytes that are decoded as a message of the file service.

use apus_fs_core::wire::frame::{Message, decode, encode};
use apus_fs_core::wire::limits::MAX_NAME;
use apus_fs_core::wire::{
    Callback, CallbackResponse, Name, Request, Response, SessionRequest, WireError,
};
use bytes::Bytes;

/// No panic (FSWIRE-1), and each decoded message survives encoding and decoding (FSWIRE-2), for
/// each message type.
pub(crate) fn run(bytes: &[u8]) {
    check_all(&Bytes::copy_from_slice(bytes));
    // The length of the header is rarely right, so the test also decodes a message of the same
    // bytes with the right length: the first byte is the length of the payload.
    if let Some((payload, header)) = bytes.split_first() {
        let mut framed = (header.len() as u32).to_le_bytes().to_vec();
        framed.extend_from_slice(header);
        framed.resize(framed.len() + usize::from(*payload), 7);
        check_all(&framed.into());
    }
}

fn check_all(bytes: &Bytes) {
    if let Some(request) = check::<Request>(bytes) {
        names_of(&request).into_iter().for_each(check_name);
    }
    if let Some(Response::Listed(listings)) = check::<Response>(bytes) {
        let entries = listings.iter().flat_map(|listing| &listing.entries);
        entries.for_each(|(name, _)| check_name(name));
    }
    check::<Callback>(bytes);
    check::<CallbackResponse>(bytes);
}

fn check<M: Message + PartialEq + std::fmt::Debug>(bytes: &Bytes) -> Option<M> {
    let decoded = decode::<M>(bytes.clone()).ok()?;
    let mut again = encode(&decoded.message).to_vec();
    let header = again.len();
    again.extend_from_slice(&decoded.payload);
    // Numbers of variable length may be longer than necessary in the bytes that were received.
    assert!(again.len() <= bytes.len(), "FSWIRE-2");
    assert!(bytes.ends_with(&decoded.payload), "FSWIRE-2");
    let again = Bytes::from(again);
    assert_eq!(decode::<M>(again.clone()).as_ref(), Ok(&decoded), "FSWIRE-2");
    let cut = decode::<M>(again.slice(..header - 1));
    assert!(matches!(cut, Err(WireError::Truncated)), "FSWIRE-1");
    Some(decoded.message)
}

fn names_of(request: &Request) -> Vec<&Name> {
    let Request::Of { request, .. } = request else { return Vec::new() };
    match request {
        SessionRequest::LookUp(look_up) => look_up.path.iter().collect(),
        SessionRequest::ListTree(list) => list.after.iter().collect(),
        _ => Vec::new(),
    }
}

/// FSWIRE-3.
fn check_name(name: &Name) {
    let bytes = name.as_bytes();
    let is_component =
        !bytes.contains(&b'/') && !bytes.contains(&0) && bytes != b"." && bytes != b"..";
    assert!(is_component && (1..=MAX_NAME).contains(&bytes.len()), "FSWIRE-3");
}
