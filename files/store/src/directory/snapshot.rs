//! The snapshot: the store's state at a checkpoint, when the log is empty and the directory is
//! durable.

use std::collections::{HashMap, HashSet};

use apus_fs_core::store::ClientId;
use apus_fs_core::wire::{FailedBatch, Ino, NodeKind};
use serde::{Deserialize, Serialize};

use super::error::OpenError;
use super::frame::Progress;
use super::identity::Identity;
use super::state::StateFolder;
use super::table::{FIRST_CREATED, Place, Table};

/// Name of the file.
const NAME: &str = "snapshot";

/// First bytes of the file, with the version of its format.
const MAGIC: &[u8; 8] = b"apusfs 1";

/// State that survives a crash, except the files themselves.
#[derive(Clone, Debug)]
pub(crate) struct Knowledge {
    /// The nodes.
    pub(crate) table: Table,
    /// Progress of each client's batches.
    pub(crate) clients: HashMap<ClientId, Progress>,
    /// Clients whose unsent changes are void.
    pub(crate) fenced: HashSet<ClientId>,
    /// Each client's last batch that failed.
    pub(crate) failures: HashMap<ClientId, FailedBatch>,
    /// Numbers below this one may have been given to clients.
    pub(crate) reserved: u64,
    /// Clients whose ranges all start below this number have returned too late.
    pub(crate) returns_from: u64,
}

impl Knowledge {
    /// Sets whether a client's unsent changes are void.
    pub(crate) fn set_fenced(&mut self, client: ClientId, is_fenced: bool) {
        if is_fenced {
            self.fenced.insert(client);
        } else {
            self.fenced.remove(&client);
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Snapshot {
    /// Next frame of the log.
    next: u64,
    reserved: u64,
    clients: Vec<([u8; 16], Progress)>,
    nodes: Vec<(Ino, NodeKind, Option<Identity>, Vec<Place>)>,
}

/// Writes a snapshot durably. The log continues with frame `next`.
pub(crate) fn write(
    state: &StateFolder,
    knowledge: &Knowledge,
    next: u64,
) -> Result<(), apus_fs_core::store::StoreError> {
    let clients = knowledge.clients.iter().map(|(client, progress)| (client.0, *progress));
    let nodes = knowledge.table.nodes();
    let snapshot = Snapshot {
        next,
        reserved: knowledge.reserved,
        clients: clients.collect(),
        nodes: nodes
            .map(|(ino, node)| (ino, node.kind, node.identity, node.places.clone()))
            .collect(),
    };
    let bytes = postcard::to_extend(&snapshot, Vec::new()).expect("vectors grow");
    let fenced: Vec<[u8; 16]> = knowledge.fenced.iter().map(|client| client.0).collect();
    let bytes = postcard::to_extend(&fenced, bytes).expect("vectors grow");
    let failures: Failures =
        knowledge.failures.iter().map(|(client, failed)| (client.0, *failed)).collect();
    let bytes = postcard::to_extend(&failures, bytes).expect("vectors grow");
    let bytes = postcard::to_extend(&knowledge.returns_from, bytes).expect("vectors grow");
    state.replace(NAME, &[MAGIC, &crc32c::crc32c(&bytes).to_le_bytes(), &bytes])
}

/// Reads the snapshot, and returns it with the number of the log's next frame.
pub(crate) fn read(state: &StateFolder, secret: [u8; 16]) -> Result<(Knowledge, u64), OpenError> {
    let mut table = Table::new(secret);
    let Some(bytes) = state.read(NAME)? else {
        let (clients, fenced, failures, returns_from) = Default::default();
        let reserved = FIRST_CREATED;
        return Ok((Knowledge { table, clients, fenced, failures, reserved, returns_from }, 0));
    };
    let Some((snapshot, Additions { fenced, failures, returns_from })) = decode(&bytes) else {
        let path = state.path.join(NAME).display().to_string();
        return Err(OpenError::Damaged { path, position: 0 });
    };
    for (ino, kind, identity, places) in &snapshot.nodes {
        table.insert(*ino, *kind, *identity);
        for place in places {
            table.add_place(*ino, place);
        }
    }
    let clients = snapshot.clients.into_iter();
    let clients = clients.map(|(client, progress)| (ClientId(client), progress)).collect();
    let fenced = fenced.into_iter().map(ClientId).collect();
    let failures = failures.into_iter().map(|(client, failed)| (ClientId(client), failed));
    let (failures, reserved) = (failures.collect(), snapshot.reserved);
    let next = snapshot.next;
    Ok((Knowledge { table, clients, fenced, failures, reserved, returns_from }, next))
}

/// Each client's last batch that failed.
type Failures = Vec<([u8; 16], FailedBatch)>;

/// Fields appended to the snapshot. Older snapshots have none of them, or only the first ones.
struct Additions {
    fenced: Vec<[u8; 16]>,
    failures: Failures,
    returns_from: u64,
}

fn decode(bytes: &[u8]) -> Option<(Snapshot, Additions)> {
    let bytes = bytes.strip_prefix(MAGIC)?;
    let (crc, bytes) = bytes.split_first_chunk()?;
    if crc32c::crc32c(bytes) != u32::from_le_bytes(*crc) {
        return None;
    }
    let (snapshot, rest) = postcard::take_from_bytes(bytes).ok()?;
    let (fenced, rest) = next(rest)?;
    let (failures, rest) = next(rest)?;
    let (returns_from, rest) = next(rest)?;
    rest.is_empty().then_some((snapshot, Additions { fenced, failures, returns_from }))
}

/// Reads the next part, which is empty in a snapshot that ends before it.
fn next<'a, T: Default + Deserialize<'a>>(bytes: &'a [u8]) -> Option<(T, &'a [u8])> {
    if bytes.is_empty() {
        return Some((T::default(), bytes));
    }
    postcard::take_from_bytes(bytes).ok()
}
