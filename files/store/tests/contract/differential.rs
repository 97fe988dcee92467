//! Random records, applied to a store and to a model of POSIX.

use apus_fs_core::Store;
use apus_fs_core::store::ClientBatch;
use apus_fs_core::wire::{Data, Ino, Name, NewNode, Record, SetAttributes};
use bytes::Bytes;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::export::{Export, handle, name, rename, time};
use crate::model::Model;
use crate::world::World;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "long name, with blanks"];

/// Draws records; about two thirds of them can be applied.
struct Generator {
    random: Pcg64Mcg,
    payload: Vec<u8>,
}

impl Generator {
    fn new(seed: u64) -> Self {
        Self { random: Pcg64Mcg::seed_from_u64(seed), payload: Vec::new() }
    }

    fn directory(&mut self, model: &Model) -> Ino {
        let index = self.random.random_range(0..=model.directories.len());
        // Files are no directories; they are drawn to see that they are refused.
        let file = model.files.keys().next().filter(|_| self.random.random_ratio(1, 30));
        let directory = model.directories.iter().nth(index).copied();
        file.copied().or(directory).unwrap_or(Ino::ROOT)
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.random.random_range(0..NAMES.len())]
    }

    /// Draws a name, preferring existing names.
    fn place(&mut self, model: &Model) -> ((Ino, String), Option<Ino>) {
        if self.random.random_ratio(3, 4) && !model.names.is_empty() {
            let index = self.random.random_range(0..model.names.len());
            let ((directory, text), node) = model.names.iter().nth(index).expect("in range");
            let text = String::from_utf8(text.as_bytes().to_vec()).expect("names of tests");
            return ((*directory, text), Some(*node));
        }
        let (directory, text) = (self.directory(model), self.name());
        let node = model.names.get(&(directory, name(text))).copied();
        ((directory, text.to_owned()), node)
    }

    fn file(&mut self, model: &Model) -> Option<Ino> {
        let index = self.random.random_range(0..model.files.len().max(1));
        model.files.keys().nth(index).copied()
    }

    fn record<W: World>(&mut self, model: &Model, export: &mut Export<W>) -> Record {
        let ((directory, text), node) = self.place(model);
        let named = node.unwrap_or(Ino::ROOT);
        let (parent, node_handle) = (handle(directory), handle(named));
        match self.random.random_range(0..13) {
            0..=2 => {
                let text = self.name();
                let new =
                    if self.random.random_ratio(1, 2) { NewNode::File } else { NewNode::Directory };
                export.create_record(Some((self.directory(model), text)), new).0
            }
            3 => Record::Unlink { parent, name: name(&text), node: node_handle },
            4 => Record::RemoveDirectory { parent, name: name(&text), node: node_handle },
            5..=7 => {
                let (to, replaced) = self.place(model);
                let exchange = self.random.random_ratio(1, 4);
                rename((directory, &text), (to.0, &to.1), named, replaced, exchange)
            }
            8 => match self.file(model).filter(|file| model.names_of(*file) > 0) {
                Some(file) => {
                    let (parent, text) = (self.directory(model), self.name());
                    Record::Link { node: handle(file), parent: handle(parent), name: name(text) }
                }
                None => Record::Close { node: node_handle },
            },
            9..=10 => {
                let file = self.file(model).unwrap_or(directory);
                let offset = self.random.random_range(0..6000);
                let length = self.random.random_range(0..3000);
                let byte: u8 = self.random.random();
                let start = self.payload.len() as u32;
                self.payload.extend((0..length).map(|index| index as u8 ^ byte));
                let data = Data { start, length };
                Record::Write { file: handle(file), offset, data, time: time(9) }
            }
            _ => {
                let file = self.file(model).unwrap_or(directory);
                let size = Some(self.random.random_range(0..9000));
                let set = SetAttributes { size, ..SetAttributes::default() };
                Record::SetAttributes { node: handle(file), set }
            }
        }
    }
}

/// Compares all names and contents, and the numbers of links.
fn compare<W: World>(export: &mut Export<W>, model: &Model) {
    for directory in model.directories.iter().chain([&Ino::ROOT]) {
        let part = export.store().list(*directory, None, 1000).expect("the model has it");
        let found: Vec<(Name, Ino)> =
            part.entries.iter().map(|(text, ino, _)| (text.clone(), *ino)).collect();
        let names = model.names.iter().filter(|((parent, _), _)| parent == directory);
        let expected: Vec<_> = names.map(|((_, text), ino)| (text.clone(), *ino)).collect();
        assert_eq!(found, expected, "names of {directory}");
        assert!(part.is_complete);
    }
    for (file, contents) in &model.files {
        assert!(export.contents(*file) == *contents, "contents of {file}");
        assert_eq!(export.links(*file) as usize, model.names_of(*file), "links of {file}");
    }
    let nameless = model.files.keys().filter(|file| model.names_of(**file) == 0);
    assert!(export.store().orphans().iter().eq(nameless), "orphans");
}

/// STORE-1 and the behaviour of Linux: results, names, contents and links equal those of a model,
/// also after crashes.
pub(crate) fn random_records_do_what_posix_says<W: World>() {
    for seed in 0..4 {
        let (mut export, mut generator) = (Export::<W>::new(), Generator::new(seed));
        let mut model = Model::default();
        let mut failed = 0;
        for step in 0..800 {
            let record = generator.record(&model, &mut export);
            let payload = std::mem::take(&mut generator.payload);
            let mut expected = model.clone();
            let result = expected.apply(&record, &payload);
            let applied = export.apply(vec![record.clone()], &payload);
            let text = format!("seed {seed}, step {step}: {record:?}");
            assert_eq!(applied.failed.map_or(Ok(()), |(_, errno)| Err(errno)), result, "{text}");
            failed += u32::from(result.is_err());
            model = if result.is_ok() { expected } else { model };
            if step % 50 == 0 {
                export.world.crash(0);
                compare(&mut export, &model);
            }
        }
        compare(&mut export, &model);
        assert!((80..500).contains(&failed), "{failed} records failed: no test of anything");
    }
}

/// STORE-2, STORE-3: batches of many records are cut at a crash, sent again, and in the end each is
/// applied once.
pub(crate) fn crashes_leave_a_prefix<W: World>() {
    for seed in 100..104 {
        let (mut export, mut generator) = (Export::<W>::new(), Generator::new(seed));
        let mut model = Model::default();
        for _ in 0..30 {
            let client = export.client;
            let first = export.store().applied(client) + 1;
            let mut batches = Vec::new();
            let mut states = vec![model.clone()];
            for number in first..first + 4 {
                let mut records = Vec::new();
                for _ in 0..generator.random.random_range(1..10) {
                    let record = generator.record(&model, &mut export);
                    let result = model.apply(&record, &generator.payload);
                    records.push(record);
                    if result.is_err() {
                        break;
                    }
                }
                let payload = Bytes::from(std::mem::take(&mut generator.payload));
                batches.push(ClientBatch { client, number, records, payload });
                states.push(model.clone());
            }
            let committed = generator.random.random_range(0..=batches.len());
            for (index, batch) in batches.iter().enumerate() {
                export.store().append(batch.clone());
                if index + 1 == committed {
                    export.store().commit().unwrap();
                }
            }
            export.world.crash(generator.random.random_range(0..4));
            let applied = (export.store().applied(client) + 1 - first) as usize;
            assert!(applied >= committed, "batches were committed, and are lost");
            compare(&mut export, &states[applied]);
            for batch in batches {
                export.store().append(batch);
            }
            export.store().commit().unwrap();
            assert_eq!(export.store().applied(client), first + 3);
            compare(&mut export, &model);
        }
    }
}
