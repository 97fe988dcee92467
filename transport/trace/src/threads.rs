//! Assignment of rings to threads.
//!
//! A thread gets a ring with its first record and returns it when it ends. Its records stay
//! readable: the rings of the 16 threads that ended last are not reused. A process that keeps
//! creating threads therefore has as many rings as simultaneous threads, plus 16. A reused ring
//! stores which of its records belong to which thread.

use crate::record::Record;
use crate::ring::{RECORDS, Ring};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rings of ended threads that are not reused. Chosen by us: the records of a handful of short
/// tests or requests, at most 8 MiB.
const RETAINED: usize = 16;

/// A ring and the threads whose records it contains.
#[derive(Debug)]
struct Slot {
    ring: Ring,
    owners: Mutex<Vec<Owner>>,
}

/// A thread that has, or had, a ring.
#[derive(Clone, Debug)]
struct Owner {
    name: String,
    tid: u32,
    cpu: u32,
    /// Number of the thread's first record.
    first: u64,
}

#[derive(Debug, Default)]
struct Slots {
    all: Vec<&'static Slot>,
    /// Slots of threads that have ended, the earliest first.
    free: VecDeque<&'static Slot>,
}

static SLOTS: Mutex<Slots> = Mutex::new(Slots { all: Vec::new(), free: VecDeque::new() });

thread_local! {
    /// The current thread's ring, once it has one. Without a destructor, so that reading it is
    /// free.
    static RING: Cell<Option<&'static Ring>> = const { Cell::new(None) };
    /// Returns the ring when the thread ends.
    static LEASE: RefCell<Option<Lease>> = const { RefCell::new(None) };
}

/// Appends a record to the current thread's ring.
#[inline]
pub(crate) fn push(record: Record) {
    match RING.get() {
        Some(ring) => ring.push(record),
        None => push_first(record),
    }
}

/// Assigns a ring to the current thread and appends a record. A thread that is ending gets no ring.
#[cold]
fn push_first(record: Record) {
    // The clocks are read at the start of the recording, before the first record.
    crate::clock::recording_start();
    let _ = LEASE.try_with(|lease| {
        let mut lease = lease.borrow_mut();
        let Lease(slot) = lease.get_or_insert_with(Lease::take);
        RING.set(Some(&slot.ring));
        slot.ring.push(record);
    });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A ring that is assigned to a thread.
struct Lease(&'static Slot);

impl Lease {
    fn take() -> Self {
        let mut slots = lock(&SLOTS);
        let reused = if slots.free.len() > RETAINED { slots.free.pop_front() } else { None };
        let slot = reused.unwrap_or_else(|| {
            // Threads end in any order and readers run at any time, so a ring lives as long as the
            // process.
            let slot = Box::leak(Box::new(Slot { ring: Ring::new(), owners: Mutex::default() }));
            slots.all.push(slot);
            slot
        });
        drop(slots);
        slot.begin();
        Self(slot)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        RING.set(None);
        lock(&SLOTS).free.push_back(self.0);
    }
}

impl Slot {
    /// Makes the current thread the owner of the ring.
    fn begin(&self) {
        let thread = std::thread::current();
        let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let cpu = u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0);
        let name = thread.name().map_or_else(|| format!("thread {tid}"), str::to_owned);
        let first = self.ring.written();
        let mut owners = lock(&self.owners);
        // Forgets owners whose successor's first record has been overwritten.
        let oldest = first.saturating_sub(RECORDS as u64);
        let gone = owners.iter().skip(1).take_while(|next| next.first <= oldest).count();
        owners.drain(..gone);
        owners.push(Owner { name, tid, cpu, first });
    }

    /// Returns the number of owners with records in the ring, and of these records.
    fn retained(&self) -> (usize, u64) {
        // The lock keeps the owner from changing.
        let owners = lock(&self.owners);
        let written = self.ring.written();
        // One less than the capacity: the next record might be about to be written.
        let records = written.min(RECORDS as u64 - 1);
        let oldest = written - records;
        let ends = owners.iter().skip(1).map(|next| next.first).chain([written]);
        let has_records = |(owner, end): &(&Owner, u64)| *end > owner.first.max(oldest);
        (owners.iter().zip(ends).filter(has_records).count(), records)
    }

    /// Appends the records in the ring to `into`, thread by thread.
    fn read(&self, into: &mut Vec<crate::Thread>) {
        // The lock keeps the owner from changing.
        let owners = lock(&self.owners);
        let (mut first, mut records) = self.ring.read();
        for (i, owner) in owners.iter().enumerate() {
            let end = owners.get(i + 1).map_or(u64::MAX, |next| next.first);
            let count = usize::try_from(end.saturating_sub(first)).unwrap_or(usize::MAX);
            let mut own: Vec<Record> = records.drain(..count.min(records.len())).collect();
            let overwritten = first.saturating_sub(owner.first);
            first = first.max(end);
            // An event may be recorded after later ones.
            own.sort_by_key(|record| record.ticks);
            let Owner { name, tid, cpu, .. } = owner.clone();
            let cpu = current_cpu(tid).unwrap_or(cpu);
            if !own.is_empty() {
                into.push(crate::Thread { name, tid, cpu, overwritten, records: own });
            }
        }
    }
}

/// Returns the number of threads with records in the rings, and of these records.
pub(crate) fn retained() -> (usize, u64) {
    let slots = lock(&SLOTS).all.clone();
    slots.iter().fold((0, 0), |(threads, records), slot| {
        let (own, retained) = slot.retained();
        (threads + own, records + retained)
    })
}

/// Returns the CPU that a living thread of this process last ran on.
fn current_cpu(tid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).ok()?;
    // The name is in parentheses, and may contain anything. Field 39 is the CPU, and 3 the first
    // after the name.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(39 - 3)?.parse().ok()
}

/// Returns the records of all threads, including threads that have ended.
pub(crate) fn read() -> Vec<crate::Thread> {
    let slots = lock(&SLOTS).all.clone();
    let mut threads = Vec::new();
    for slot in slots {
        slot.read(&mut threads);
    }
    threads
}

#[cfg(all(test, not(apus_trace_loom)))]
mod tests {
    use super::*;
    use crate::event::Event;

    /// Runs `body` in a thread with this name, until the thread has ended.
    fn run<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> T {
        let thread = std::thread::Builder::new().name(name.into()).spawn(body).unwrap();
        thread.join().unwrap()
    }

    fn note(number: u64) {
        push(Record::of_thread(number, Event::Look, 0, number));
    }

    #[test]
    fn records_outlive_their_thread_and_are_in_the_order_of_their_ticks() {
        run("outlived", || [7, 3, 5].into_iter().for_each(note));
        let threads = read();
        let thread = threads.iter().find(|thread| thread.name == "outlived").unwrap();
        let ticks: Vec<u64> = thread.records.iter().map(|record| record.ticks).collect();
        assert_eq!((ticks, thread.overwritten), (vec![3, 5, 7], 0));
    }

    #[test]
    fn rings_are_reused_and_records_keep_their_writer() {
        let tids: Vec<u64> = (0..100)
            .map(|_| {
                run("reused", || {
                    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u64;
                    note(tid);
                    tid
                })
            })
            .collect();
        let threads = read();
        let seen: Vec<_> = threads.iter().filter(|thread| thread.name == "reused").collect();
        for thread in &seen {
            assert!(thread.records.iter().all(|record| record.b == u64::from(thread.tid)));
        }
        // The records are few, so all are still in the rings, although there are fewer rings than
        // threads.
        let read: Vec<u64> =
            seen.iter().flat_map(|thread| &thread.records).map(|record| record.b).collect();
        assert!(tids.iter().all(|tid| read.contains(tid)));
        assert!(lock(&SLOTS).all.len() < 100, "{}", lock(&SLOTS).all.len());
    }

    #[test]
    fn overwritten_records_are_counted() {
        const MORE: u64 = 10;
        run("overflowing", || (0..RECORDS as u64 + MORE).for_each(note));
        let threads = read();
        let thread = threads.iter().find(|thread| thread.name == "overflowing").unwrap();
        assert_eq!(thread.overwritten, MORE + 1);
        assert_eq!(thread.records.len(), RECORDS - 1);
    }

    #[test]
    fn retained_records_are_counted_without_reading_them() {
        let slot = Slot { ring: Ring::new(), owners: Mutex::default() };
        assert_eq!(slot.retained(), (0, 0));
        slot.begin();
        assert_eq!(slot.retained(), (0, 0), "the owner has written no record yet");
        (0..5).for_each(|number| slot.ring.push(Record::of_thread(number, Event::Look, 0, 0)));
        assert_eq!(slot.retained(), (1, 5));
        slot.begin();
        slot.ring.push(Record::of_thread(5, Event::Look, 0, 0));
        assert_eq!(slot.retained(), (2, 6));
        // The second owner overwrites the records of the first.
        (0..RECORDS as u64)
            .for_each(|number| slot.ring.push(Record::of_thread(number, Event::Look, 0, 0)));
        assert_eq!(slot.retained(), (1, RECORDS as u64 - 1));
        let mut threads = Vec::new();
        slot.read(&mut threads);
        let read: usize = threads.iter().map(|thread| thread.records.len()).sum();
        assert_eq!((threads.len(), read), (1, RECORDS - 1), "equal to the records that are read");
    }

    #[test]
    fn the_cpu_of_a_living_thread_is_known() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        assert!(current_cpu(tid).is_some());
        assert_eq!(current_cpu(u32::MAX), None);
    }
}
