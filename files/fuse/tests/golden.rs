//! Requests and replies byte by byte.

use apus_fuse::Errno;
use apus_fuse::codec::{
    Directory, EncodeError, InitFlags, Notification, Opcode, Operation, ParseError, RenameFlags,
    Reply, Request,
};

/// A request about node 7 with the right length.
fn request(opcode: Opcode, body: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    bytes[4..8].copy_from_slice(&opcode.number().to_ne_bytes());
    bytes[8..16].copy_from_slice(&42_u64.to_ne_bytes());
    bytes[16..24].copy_from_slice(&7_u64.to_ne_bytes());
    bytes.extend(body.concat());
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes
}

fn parse(opcode: Opcode, body: &[&[u8]]) -> Result<(), ParseError> {
    Request::parse(&request(opcode, body), InitFlags::empty()).map(|_| ())
}

#[test]
fn a_rename_has_two_names_and_flags() {
    let bytes = request(
        Opcode::Rename2,
        &[&9_u64.to_ne_bytes(), &1_u32.to_ne_bytes(), &[0; 4], b"old\0new\0"],
    );
    let parsed = Request::parse(&bytes, InitFlags::empty()).unwrap();
    assert_eq!((parsed.header.unique, parsed.header.node), (42, 7));
    let flags = RenameFlags::NOREPLACE;
    let expected = Operation::Rename { name: b"old", new_parent: 9, new_name: b"new", flags };
    assert_eq!(parsed.operation, expected);
}

#[test]
fn setxattr_depends_on_what_was_negotiated() {
    let sizes = [2_u32, 1].map(u32::to_ne_bytes).concat();
    let short = request(Opcode::Setxattr, &[&sizes, b"user.a\0xy"]);
    let long = request(Opcode::Setxattr, &[&sizes, &[1, 0, 0, 0, 0, 0, 0, 0], b"user.a\0xy"]);
    for (bytes, negotiated, kill_sgid) in
        [(short, InitFlags::empty(), false), (long, InitFlags::SETXATTR_EXT, true)]
    {
        let expected = Operation::Setxattr { name: b"user.a", value: b"xy", flags: 1, kill_sgid };
        assert_eq!(Request::parse(&bytes, negotiated).unwrap().operation, expected);
    }
}

#[test]
fn names_that_are_no_components_are_refused() {
    for name in [&b"\0"[..], b".\0", b"..\0", b"a/b\0"] {
        assert_eq!(parse(Opcode::Lookup, &[name]), Err(ParseError::Name), "FUSE-2");
    }
    assert_eq!(parse(Opcode::Lookup, &[b"name"]), Err(ParseError::Unterminated));
    assert_eq!(parse(Opcode::Lookup, &[b"...\0"]), Ok(()));
    assert_eq!(parse(Opcode::Write, &[&[255; 40], b"short"]), Err(ParseError::Truncated));
}

#[test]
fn replies_have_the_layout_of_the_header() {
    let bytes =
        |reply: Reply<'_>, opcode: Opcode| reply.encode(42, opcode.number()).unwrap().to_vec();
    let mut expected = 16_u32.to_ne_bytes().to_vec();
    expected.extend((-4_i32).to_ne_bytes());
    expected.extend(42_u64.to_ne_bytes());
    assert_eq!(bytes(Reply::Error(Errno::INTR), Opcode::Read), expected);
    assert_eq!(bytes(Reply::Data(b"abc"), Opcode::Read)[16..], *b"abc");
    assert_eq!(bytes(Reply::Copied(5), Opcode::CopyFileRange)[16..], [5, 0, 0, 0, 0, 0, 0, 0]);
    let copied = bytes(Reply::Copied(1 << 33), Opcode::CopyFileRange64);
    assert_eq!(copied[16..], (1_u64 << 33).to_ne_bytes());
}

#[test]
fn a_directory_takes_what_fits_and_no_bad_name() {
    let mut directory = Directory::new(64);
    assert_eq!(directory.push(2, 1, 0o100_644, b"abcdefgh"), Ok(()));
    assert_eq!(directory.bytes().len(), 32);
    assert_eq!(directory.bytes()[20], 8, "DT_REG");
    assert_eq!(directory.push(3, 2, 0o40_755, b"a/b"), Err(EncodeError::Name), "FUSE-3");
    assert_eq!(directory.push(3, 2, 0o40_755, b"123456789"), Err(EncodeError::Full));
    assert_eq!(directory.push(3, 2, 0o40_755, b"a"), Ok(()));
    assert_eq!(directory.bytes().len(), 64);
}

#[test]
fn notifications_have_codes_and_names_with_an_end() {
    let entry = Notification::InvalEntry { parent: 1, name: b"ab", expire_only: true };
    let bytes = entry.encode().unwrap().to_vec();
    assert_eq!(bytes[..4], 35_u32.to_ne_bytes());
    assert_eq!(bytes[4..8], 3_i32.to_ne_bytes());
    assert_eq!(bytes[8..16], [0; 8]);
    assert_eq!(bytes[24..], *b"\x02\0\0\0\x01\0\0\0ab\0");
    let bad = Notification::InvalEntry { parent: 1, name: b"..", expire_only: false };
    assert_eq!(bad.encode().map(|_| ()), Err(EncodeError::Name), "FUSE-3");
}
