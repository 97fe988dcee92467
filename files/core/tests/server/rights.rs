//! Rights of clients: what the server refuses, whatever a client's kernel has permitted.

use std::sync::Arc;

use apus_fs_core::rights::{Rights, User};
use apus_fs_core::server::ServerSettings;
use apus_fs_core::wire::frame::encode;
use apus_fs_core::wire::{
    Data, Errno, Failure, Handle, Hello, LeaseKind, ListTree, Lock, LockKind, LockOwner, LockRange,
    NewNode, NodeKind, NodeRange, PathStep, Record, Request, Response, SessionRequest,
    SetAttributes, Time,
};

use crate::store::SmallStore;
use crate::world::{Id, World, name, settings};

use LeaseKind::{Exclusive, None as NoLease, Shared};

const ROOT: Id = 0;
const OTHER: Id = 1;
const USER: Id = 2;
const ANY: Id = 3;

fn user(uid: u32, groups: &[u32]) -> Rights {
    Rights::User(Arc::new(User { uid, gid: uid, groups: groups.to_vec() }))
}

/// A server with files of root, of user 1000, and a folder for all.
struct Files {
    world: World,
    secret: Handle,
    public: Handle,
    program: Handle,
    own: Handle,
    open: Handle,
    greetings: u64,
}

fn mode(node: Handle, mode: u16, owner: u32) -> Record {
    let set = SetAttributes {
        mode: Some(mode),
        uid: Some(owner),
        gid: Some(owner),
        ..Default::default()
    };
    Record::SetAttributes { node, set }
}

impl Files {
    fn new() -> Self {
        let mut world = World::new();
        world.rights.insert(OTHER, user(65_534, &[]));
        world.rights.insert(USER, user(1_000, &[27]));
        world.rights.insert(ANY, Rights::AnyUser);
        for id in [ROOT, OTHER, USER, ANY] {
            world.join(id);
            world.release_all(id, &[world.root]);
        }
        let root = world.root;
        world.lease(ROOT, &[(root, Exclusive)]);
        let mut file = |name: &str, bits, owner| {
            let file = world.create_file(ROOT, root, name);
            let data = Data { start: 0, length: 8 };
            let write = Record::Write { file, offset: 0, data, time: Time::default() };
            world.apply(ROOT, &[write, mode(file, bits, owner)], b"contents");
            file
        };
        let secret = file("secret", 0o600, 0);
        let public = file("public", 0o644, 0);
        let program = file("program", 0o4777, 0);
        let own = file("own", 0o600, 1_000);
        let ino = world.new_ino(ROOT);
        let open = World::create(root, "open", ino, NewNode::Directory);
        world.apply(ROOT, &[open, mode(Handle::created(ino), 0o1777, 0)], b"");
        let open = world.find(ROOT, root, "open", NoLease).handle;
        world.release_all(ROOT, &[root, secret, public, program, own, open]);
        Self { world, secret, public, program, own, open, greetings: 0 }
    }

    fn read(&mut self, id: Id, file: Handle) -> Response {
        let ranges = vec![NodeRange { file, offset: 0, length: 8 }];
        self.world.ask(id, SessionRequest::Read { ranges })
    }

    /// Asks for an exclusive lease, and sends records whether or not it was granted.
    fn change(&mut self, id: Id, nodes: &[Handle], records: &[Record]) -> Response {
        let wanted: Vec<_> = nodes.iter().map(|node| (*node, Exclusive)).collect();
        self.world.ask(id, World::wanted(&wanted));
        let batch = self.world.batch(id, records);
        let answer = self.world.ask_with(id, batch, b"replaced").response;
        if matches!(answer, Response::Failed(_)) {
            self.resume(id);
        }
        self.world.release_all(id, nodes);
        answer
    }

    /// Greets again, as a client does after a batch that failed.
    fn resume(&mut self, id: Id) {
        let session = self.world.clients[&id].session;
        self.greetings += 1;
        let hello = Hello { session: Some(session), greeting: self.greetings, ..World::hello(id) };
        assert!(self.world.greet(id, hello).unwrap().resumed);
        self.world.release_all(id, &[self.world.root]);
    }
}

fn refused(errno: Errno) -> Response {
    Response::Failed(Failure::Errno(errno))
}

fn write(file: Handle) -> Record {
    let data = Data { start: 0, length: 8 };
    Record::Write { file, offset: 0, data, time: Time::default() }
}

/// FS-18.
#[test]
fn contents_are_read_by_those_who_may() {
    let mut files = Files::new();
    let Files { secret, public, own, .. } = files;
    for id in [OTHER, USER, ANY] {
        assert_eq!(files.read(id, secret), refused(Errno::ACCES));
        assert!(matches!(files.read(id, public), Response::ReadDone(_)));
    }
    assert_eq!(files.read(OTHER, own), refused(Errno::ACCES));
    for id in [ROOT, USER, ANY] {
        assert!(matches!(files.read(id, own), Response::ReadDone(_)));
    }
    assert!(matches!(files.read(ROOT, secret), Response::ReadDone(_)));
    // Neither with attributes, nor in a listing.
    let root = files.world.root;
    assert_eq!(files.world.find(OTHER, root, "secret", Shared).contents, None);
    assert_eq!(files.world.find(ROOT, root, "secret", NoLease).contents.unwrap(), "contents");
    let list = ListTree {
        directory: root,
        after: None,
        depth: 2,
        entries: 100,
        inline: 100,
        inline_total: 1_000,
        lease: NoLease,
    };
    let Response::Listed(listings) = files.world.ask(OTHER, SessionRequest::ListTree(list)) else {
        panic!("not listed");
    };
    let shown = listings[0].entries.iter().filter(|(_, entry)| entry.contents.is_some());
    let shown: Vec<_> = shown.map(|(name, _)| name.as_bytes().to_vec()).collect();
    assert_eq!(shown, [b"program".to_vec(), b"public".to_vec()]);
    let xattr = SessionRequest::GetXattr { node: secret, name: "user.a".into() };
    assert_eq!(files.world.ask(OTHER, xattr), refused(Errno::ACCES));
    let lock = |range| Lock {
        file: secret,
        owner: LockOwner { owner: 1, is_flock: false },
        kind: LockKind::Write,
        range,
        wait: false,
        reclaim: false,
    };
    let lock = lock(LockRange { start: 0, end: 9 });
    assert_eq!(files.world.ask(OTHER, SessionRequest::Lock(lock)), refused(Errno::ACCES));
}

#[test]
fn a_closed_folder_is_neither_walked_nor_listed() {
    let mut files = Files::new();
    let root = files.world.root;
    files.world.lease(ROOT, &[(root, Exclusive)]);
    let ino = files.world.new_ino(ROOT);
    let create = World::create(root, "closed", ino, NewNode::Directory);
    files.world.apply(ROOT, &[create, mode(Handle::created(ino), 0o700, 0)], b"");
    let closed = files.world.find(ROOT, root, "closed", NoLease).handle;
    files.world.create_file(ROOT, Handle::created(ino), "inside");
    files.world.release_all(ROOT, &[root, closed]);
    for id in [OTHER, ANY] {
        let walk = World::look_up(root, &["closed", "inside"], Shared);
        let Response::Found { steps, .. } = files.world.ask(id, walk) else { panic!("not found") };
        assert_eq!(steps.last(), Some(&PathStep::Failed(Errno::ACCES)));
        let list = ListTree {
            directory: closed,
            after: None,
            depth: 1,
            entries: 100,
            inline: 0,
            inline_total: 0,
            lease: NoLease,
        };
        assert_eq!(files.world.ask(id, SessionRequest::ListTree(list)), refused(Errno::ACCES));
    }
}

/// FS-18.
#[test]
fn changes_need_rights() {
    let mut files = Files::new();
    let Files { secret, public, program, own, open, .. } = files;
    let root = files.world.root;
    for id in [OTHER, ANY] {
        for file in [secret, public] {
            assert_eq!(files.change(id, &[file], &[write(file)]), refused(Errno::ACCES));
            let taken = [mode(file, 0o777, 65_534)];
            assert_eq!(files.change(id, &[file], &taken), refused(Errno::PERM));
            let unlink = Record::Unlink { parent: root, name: name("public"), node: file };
            files.world.ask(id, World::wanted(&[(root, Exclusive)]));
            let done = files.change(id, &[file], &[unlink]);
            assert!(matches!(done, Response::Failed(Failure::Errno(Errno::ACCES | Errno::STALE))));
        }
        // Everybody may write it, and no client may keep its bits.
        assert_eq!(files.change(id, &[program], &[write(program)]), refused(Errno::ACCES));
        // A directory that a client may not change is not leased to it exclusively.
        let wanted = World::wanted(&[(root, Exclusive)]);
        assert_eq!(files.world.ask(id, wanted), refused(Errno::ACCES));
        assert_eq!(files.world.find(id, root, "open", Exclusive).lease, Exclusive);
        files.world.release_all(id, &[root, open]);
    }
    assert!(matches!(files.change(USER, &[own], &[write(own)]), Response::BatchDone(_)));
    assert_eq!(files.change(OTHER, &[own], &[write(own)]), refused(Errno::ACCES));
    // Sticky: only owners remove names.
    files.world.lease(USER, &[(open, Exclusive)]);
    let file = files.world.create_file(USER, open, "file");
    files.world.release_all(USER, &[open, file]);
    let unlink = Record::Unlink { parent: open, name: name("file"), node: file };
    let nodes = [open, file];
    assert_eq!(files.change(OTHER, &nodes, std::slice::from_ref(&unlink)), refused(Errno::PERM));
    assert!(matches!(files.change(USER, &nodes, &[unlink]), Response::BatchDone(_)));
    // A link to a file that is not one's own.
    let link = Record::Link { node: secret, parent: open, name: name("link") };
    assert_eq!(files.change(OTHER, &[open, secret], &[link]), refused(Errno::PERM));
}

/// Creates a node in the folder for all, as root would, and returns what it became.
fn made(files: &mut Files, id: Id, node: NewNode, bits: u16) -> Result<(u16, u32, u32), Errno> {
    let open = files.open;
    let ino = files.world.new_ino(id);
    let create = Record::Create {
        parent: Some((open, name(&format!("{id} {ino}")))),
        ino,
        node,
        mode: bits,
        uid: 0,
        gid: 0,
        time: Time::default(),
    };
    match files.change(id, &[open], &[create]) {
        Response::BatchDone(done) => {
            let (_, new) = done.changed.iter().find(|(handle, _)| handle.ino == ino).unwrap();
            Ok((new.mode, new.uid, new.gid))
        }
        Response::Failed(Failure::Errno(errno)) => Err(errno),
        other => panic!("{other:?}"),
    }
}

/// FS-19.
#[test]
fn what_is_made_belongs_to_the_user_and_gives_no_rights() {
    let mut files = Files::new();
    assert_eq!(made(&mut files, ROOT, NewNode::File, 0o4755), Ok((0o4755, 0, 0)));
    for (id, owner) in [(OTHER, 65_534), (USER, 1_000), (ANY, 65_534)] {
        assert_eq!(made(&mut files, id, NewNode::File, 0o6777), Ok((0o777, owner, owner)));
        for kind in [NodeKind::BlockDevice, NodeKind::CharacterDevice] {
            let device = NewNode::Special { kind, device: 0x801 };
            assert_eq!(made(&mut files, id, device, 0o666), Err(Errno::PERM), "{kind:?}");
        }
        let pipe = NewNode::Special { kind: NodeKind::Fifo, device: 0 };
        assert_eq!(made(&mut files, id, pipe, 0o666), Ok((0o666, owner, owner)));
        // The group of a directory is passed on only to members.
        assert_eq!(made(&mut files, id, NewNode::Directory, 0o2777).unwrap().0, 0o2777);
    }
    let device = NewNode::Special { kind: NodeKind::BlockDevice, device: 0x801 };
    assert!(made(&mut files, ROOT, device, 0o600).is_ok());
}

/// Records of a batch depend on earlier ones of the batch.
#[test]
fn a_batch_is_judged_as_it_will_be_applied() {
    let mut files = Files::new();
    let open = files.open;
    let folder = files.world.new_ino(USER);
    let file = files.world.new_ino(USER);
    let records = [
        World::create(open, "folder", folder, NewNode::Directory),
        mode(Handle::created(folder), 0o700, 1_000),
        World::create(Handle::created(folder), "file", file, NewNode::File),
        write(Handle::created(file)),
        mode(Handle::created(file), 0o6755, 0),
    ];
    let Response::BatchDone(done) = files.change(USER, &[open], &records) else {
        panic!("refused");
    };
    let (_, new) = done.changed.iter().find(|(handle, _)| handle.ino == file).unwrap();
    assert_eq!((new.mode, new.uid, new.gid), (0o755, 1_000, 1_000), "nothing was given away");
}

/// FS-19.
#[test]
fn attributes_that_give_rights_are_refused() {
    let mut files = Files::new();
    let own = files.own;
    for id in [ROOT, USER] {
        for attribute in ["security.capability", "trusted.overlay", "system.posix_acl_access"] {
            let name = bytes::Bytes::from(attribute);
            let set = Record::SetXattr { node: own, name: name.clone(), value: "x".into() };
            assert_eq!(files.change(id, &[own], &[set]), refused(Errno::OPNOTSUPP));
            let get = SessionRequest::GetXattr { node: own, name };
            assert_eq!(files.world.ask(id, get), refused(Errno::OPNOTSUPP));
        }
    }
}

#[test]
fn a_session_is_of_the_client_that_began_it() {
    let mut files = Files::new();
    let session = files.world.clients[&ROOT].session;
    let renew = encode(&Request::Of { session, request: SessionRequest::Renew });
    // The port now belongs to another user.
    files.world.rights.insert(ROOT, user(65_534, &[]));
    let call = files.world.send_bytes(ROOT, renew);
    assert_eq!(files.world.response(call), Some(Response::Failed(Failure::SessionEnded)));
    let hello = Hello { session: Some(session), ..World::hello(ROOT) };
    assert_eq!(files.world.greet(ROOT, hello), Err(Failure::NotTrusted));
    files.world.rights.remove(&ROOT);
    assert_eq!(files.world.ask(ROOT, SessionRequest::Renew), Response::Done);
}

#[test]
fn all_accesses_are_squashed() {
    let squash = ServerSettings { squash: Some(65_534), ..settings() };
    let mut world = World::with(SmallStore::new(), squash);
    let squashed = Rights::User(Arc::new(User::alone(65_534)));
    world.rights.insert(0, squashed);
    world.join(0);
    let root = world.root;
    assert_eq!(world.ask(0, World::wanted(&[(root, Exclusive)])), refused(Errno::ACCES));
}
