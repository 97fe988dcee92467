//! Properties that hold for arbitrary bytes parsed as a request.

use apus_fuse::codec::{InitFlags, Opcode, Operation, Request, RequestHeader, is_component};

/// No panic (FUSE-1), and names that are components (FUSE-2), whatever was negotiated.
pub(crate) fn run(bytes: &[u8]) {
    for negotiated in [InitFlags::empty(), InitFlags::all()] {
        check(bytes, negotiated);
        // The length in the header is right by chance only, so the same bytes with the right one.
        let mut repaired = bytes.to_vec();
        if let Some(length) = repaired.get_mut(..4) {
            length.copy_from_slice(&(bytes.len() as u32).to_ne_bytes());
            check(&repaired, negotiated);
        }
    }
}

fn check(bytes: &[u8], negotiated: InitFlags) {
    let Ok(request) = Request::parse(bytes, negotiated) else { return };
    assert_eq!(RequestHeader::parse(bytes), Ok(request.header));
    let unknown = matches!(request.operation, Operation::Unknown { .. });
    assert_eq!(unknown, Opcode::from_number(request.header.opcode).is_none());
    let names: [&[u8]; 2] = match request.operation {
        Operation::Lookup { name }
        | Operation::Mknod { name, .. }
        | Operation::Mkdir { name, .. }
        | Operation::Symlink { name, .. }
        | Operation::Unlink { name }
        | Operation::Rmdir { name }
        | Operation::Link { new_name: name, .. } => [name, b"x"],
        Operation::Create(create) => [create.name, b"x"],
        Operation::Rename { name, new_name, .. } => [name, new_name],
        Operation::BatchForget(list) => {
            assert_eq!(list.iter().count(), list.len(), "FUSE-1");
            assert!(list.len() * 16 <= bytes.len(), "FUSE-1");
            return;
        }
        Operation::Write(write) => {
            assert!(write.data.len() <= bytes.len(), "FUSE-1");
            return;
        }
        _ => return,
    };
    assert!(names.into_iter().all(is_component), "FUSE-2");
}
