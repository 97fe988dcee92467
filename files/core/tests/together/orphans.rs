//! Files without a name live as long as a client has them open.

use apus_fs_core::Store;
use apus_fs_core::client::{Operation, Reply};
use apus_fs_core::wire::Ino;

use crate::world::{World, place};

/// FS-4.
#[test]
fn a_file_that_another_client_removes_is_readable_until_it_is_closed() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.write(0, file, 0, b"kept");
    assert_eq!(world.look_up(1, Ino::ROOT, "file"), Some(file));
    assert_eq!(world.run(1, Operation::Unlink(place(Ino::ROOT, "file"))), Ok(Reply::Done));
    world.flush(1);
    assert_eq!(world.read(0, file), b"kept");
    world.write(0, file, 4, b" and written");
    assert_eq!(world.read(0, file), b"kept and written");
    world.flush(0);
    assert_eq!(world.server().store().orphans(), [file]);
    world.close(0, file);
    world.flush(0);
    assert_eq!(world.server().store().orphans(), []);
}

#[test]
fn a_file_without_a_name_gets_one_or_vanishes() {
    let mut world = World::new(2);
    for named in [false, true] {
        let create = Operation::CreateTemporary { directory: Ino::ROOT, mode: 0o600 };
        let Ok(Reply::Created(entry)) = world.run(0, create) else { panic!("not created") };
        world.write(0, entry.node, 0, b"temporary");
        world.sync(0, entry.node);
        if named {
            let link = Operation::Link { node: entry.node, place: place(Ino::ROOT, "named") };
            assert!(world.run(0, link).is_ok());
        }
        world.close(0, entry.node);
        world.flush(0);
        assert_eq!(world.server().store().orphans(), []);
        assert_eq!(world.look_up(1, Ino::ROOT, "named").is_some(), named);
    }
}
