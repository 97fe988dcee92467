//! Journeys: the places through which a log moves each node, and its final place.
//!
//! The first pass of a replay. It applies all records to the table, without the directory.

use std::collections::{BTreeMap, HashMap};

use apus_fs_core::store::ClientId;
use apus_fs_core::wire::{Errno, FailedBatch, Ino, Name, NodeKind, Record};

use super::frame::{Frame, FrameEntry, Observation};
use super::identity::Identity;
use super::names::{Fate, NameChange, Removal, kind_of_new};
use super::snapshot::Knowledge;
use super::table::{Place, Table};

/// A record of the log: index of the frame, index of the record.
pub(crate) type RecordIndex = (usize, usize);

/// A node whose names the log changes.
#[derive(Clone, Debug)]
pub(crate) struct Traveller {
    pub(crate) kind: NodeKind,
    /// `None` if the log creates the node and ends before it records the backing file.
    pub(crate) identity: Option<Identity>,
    /// All places where the node may be.
    pub(crate) places: Vec<Place>,
    /// The record that creates the node, if the log does.
    pub(crate) created: Option<RecordIndex>,
    /// Whether the log deletes the node.
    pub(crate) is_deleted: bool,
}

/// Effects of a log on names.
#[derive(Debug, Default)]
pub(crate) struct Journeys {
    pub(crate) nodes: HashMap<Ino, Traveller>,
    /// All records that apply, in order.
    pub(crate) records: Vec<RecordIndex>,
}

impl Journeys {
    /// Applies the frames of a log to the table. Afterwards, each name is in its final place.
    ///
    /// A replay that was ended by a record that the file system refused has moved nodes to the
    /// places that they would have had without the refusal. The result contains these places, too.
    pub(crate) fn run_all(knowledge: &mut Knowledge, frames: &[Frame]) -> Self {
        let refusals = frames.iter().filter(|frame| is_replay_stop(frame)).count();
        let earlier: Vec<_> =
            (0..refusals).map(|count| Self::run(&mut knowledge.clone(), frames, count)).collect();
        let mut journeys = Self::run(knowledge, frames, refusals);
        for other in earlier {
            journeys.merge(&knowledge.table, other);
        }
        journeys
    }

    /// Adds the places where another replay may have left nodes.
    fn merge(&mut self, table: &Table, other: Self) {
        for (ino, theirs) in other.nodes {
            let is_deleted = theirs.created.is_some();
            let known = table.node(ino).map_or(Vec::new(), |node| node.places.clone());
            let node = self.nodes.entry(ino).or_insert(Traveller {
                places: known,
                created: theirs.created,
                is_deleted,
                ..Traveller::new(theirs.kind)
            });
            node.identity = node.identity.or(theirs.identity);
            theirs.places.iter().for_each(|place| node.visit(place));
        }
    }

    /// Applies the frames of a log as a replay did after `refusals` records had been refused.
    fn run(knowledge: &mut Knowledge, frames: &[Frame], refusals: usize) -> Self {
        let mut journeys = Self::default();
        let replays = frames.iter().filter(|frame| is_replay_stop(frame)).take(refusals);
        let servers = frames.iter().filter(|frame| !is_replay_stop(frame));
        let stopped: HashMap<u64, u32> = servers
            .chain(replays)
            .filter_map(|frame| match frame.entry {
                FrameEntry::Stopped { sequence, record, .. } => Some((sequence, record)),
                _ => None,
            })
            .collect();
        for (index, frame) in frames.iter().enumerate() {
            match &frame.entry {
                FrameEntry::Observed(observations) => {
                    for observation in observations {
                        journeys.observe(knowledge, observation);
                    }
                }
                FrameEntry::Part(part) => {
                    let stop = stopped.get(&frame.sequence).map(|record| *record as usize);
                    let count = part.records.len();
                    let refused = journeys.run_records(
                        &mut knowledge.table,
                        index,
                        &part.records[..stop.map_or(count, |stop| stop.min(count))],
                    );
                    // A later frame contains the file system's reason for refusing a record.
                    let stopped = stop.map(|stop| (stop, Errno::IO));
                    let failed = refused.or(stopped);
                    let next = part.next.filter(|_| failed.is_none());
                    let client = ClientId(part.client);
                    let progress = knowledge.clients.entry(client).or_default();
                    if let Some((record, error)) = failed {
                        let record = progress.position.record + record as u32;
                        let failed = FailedBatch { number: part.number, record, error };
                        knowledge.failures.insert(client, failed);
                    }
                    progress.advance(part.number, next);
                }
                FrameEntry::Stopped { .. } => {}
                FrameEntry::Reserved { up_to } => {
                    knowledge.reserved = knowledge.reserved.max(*up_to);
                }
            }
        }
        journeys
    }

    fn observe(&mut self, knowledge: &mut Knowledge, observation: &Observation) {
        let table = &mut knowledge.table;
        match observation {
            Observation::Present { ino, kind, identity, parent, name } => {
                let place = (*parent, name.clone());
                table.forget_place(&place);
                table.insert(*ino, *kind, Some(*identity));
                table.add_place(*ino, &place);
                self.identify(*ino, *identity);
                if let Some(node) = self.nodes.get_mut(ino) {
                    node.visit(&place);
                }
            }
            Observation::Applied { .. } => {}
            Observation::Absent { parent, name } => table.forget_place(&(*parent, name.clone())),
            Observation::Created { ino, identity } => {
                table.identify(*ino, *identity);
                self.identify(*ino, *identity);
            }
            Observation::Dropped { ino } => {
                let step = table.check_close(*ino);
                self.note(table, &step);
                table.apply(&step, NodeKind::File);
            }
            Observation::Forgotten { client } => {
                knowledge.clients.remove(&ClientId(*client));
                knowledge.fenced.remove(&ClientId(*client));
                knowledge.failures.remove(&ClientId(*client));
            }
            Observation::Fenced { client, is_fenced } => {
                knowledge.set_fenced(ClientId(*client), *is_fenced);
            }
            Observation::ReturnsFrom { first } => knowledge.returns_from = *first,
            Observation::Failed { client, failed } => {
                knowledge.failures.insert(ClientId(*client), *failed);
            }
            Observation::Refused { client, number } => {
                knowledge.clients.entry(ClientId(*client)).or_default().advance(*number, None);
            }
        }
    }

    /// An inode number may have been used before by a deleted node.
    fn identify(&mut self, ino: Ino, identity: Identity) {
        if !self.nodes.contains_key(&ino) {
            return;
        }
        for (other, node) in &mut self.nodes {
            if *other == ino {
                node.identity = Some(identity);
            } else if node.identity == Some(identity) {
                node.identity = None;
            }
        }
    }

    /// Applies records up to the first that fails, and returns that record and the reason.
    fn run_records(
        &mut self,
        table: &mut Table,
        frame: usize,
        records: &[Record],
    ) -> Option<(usize, Errno)> {
        for (index, record) in records.iter().enumerate() {
            let step = match table.check(record) {
                Ok(step) => step,
                Err(errno) => return Some((index, errno)),
            };
            self.note(table, &step);
            let kind = match record {
                Record::Create { node, .. } => kind_of_new(node).unwrap_or(NodeKind::File),
                _ => NodeKind::File,
            };
            if let NameChange::Create { ino, place } = &step {
                let node = self.nodes.entry(*ino).or_insert_with(|| Traveller::new(kind));
                (node.kind, node.identity, node.is_deleted) = (kind, None, false);
                node.created = Some((frame, index));
                node.visit(place);
            }
            table.apply(&step, kind);
            self.records.push((frame, index));
        }
        None
    }

    /// Notes where a step takes nodes from and to. The table is as it was before.
    fn note(&mut self, table: &Table, step: &NameChange) {
        match step {
            NameChange::Link { ino, to, .. } => self.travel(table, *ino, to),
            NameChange::Move { ino, to, replaced, .. } => {
                self.travel(table, *ino, to);
                if let Some(removal) = replaced {
                    self.note_removal(table, removal);
                }
            }
            NameChange::Exchange { first, second } => {
                self.travel(table, first.0, &second.1);
                self.travel(table, second.0, &first.1);
            }
            NameChange::Remove(removal) => self.note_removal(table, removal),
            NameChange::Create { .. } | NameChange::Nothing => {}
        }
    }

    fn note_removal(&mut self, table: &Table, removal: &Removal) {
        self.travel(table, removal.ino, &removal.place);
        if let Some(node) = self.nodes.get_mut(&removal.ino) {
            node.is_deleted = matches!(removal.fate, Fate::Directory | Fate::Dropped);
        }
    }

    fn travel(&mut self, table: &Table, ino: Ino, to: &Place) {
        let Some(known) = table.node(ino) else { return };
        let node = self.nodes.entry(ino).or_insert_with(|| Traveller {
            identity: known.identity,
            places: known.places.clone(),
            ..Traveller::new(known.kind)
        });
        node.visit(to);
    }

    /// Returns the places of all nodes, by directory and name.
    pub(crate) fn by_directory(&self) -> HashMap<Ino, BTreeMap<Name, Vec<Ino>>> {
        let mut directories: HashMap<Ino, BTreeMap<Name, Vec<Ino>>> = HashMap::new();
        for (ino, node) in &self.nodes {
            for (parent, name) in &node.places {
                let names = directories.entry(*parent).or_default();
                names.entry(name.clone()).or_default().push(*ino);
            }
        }
        directories
    }
}

fn is_replay_stop(frame: &Frame) -> bool {
    matches!(frame.entry, FrameEntry::Stopped { in_replay: true, .. })
}

impl Traveller {
    fn new(kind: NodeKind) -> Self {
        Self { kind, identity: None, places: Vec::new(), created: None, is_deleted: false }
    }

    fn visit(&mut self, place: &Place) {
        if !self.places.contains(place) {
            self.places.push(place.clone());
        }
    }
}
