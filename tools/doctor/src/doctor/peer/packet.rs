//! How are questions to a doctor elsewhere, and its answers, written?
//!
//! ```text
//!  0               8               16      20  21  22      24          32
//! +---------------+---------------+-------+---+---+-------+-----------+----------------- - -
//! | "apusdoc1"    | session       | number|kin|cls| room  | zeros     | answers, then filling
//! +---------------+---------------+-------+---+---+-------+-----------+----------------- - -
//! ```
//!
//! Big endian. An answer repeats session, number and kind with the highest bit set, and has behind it what was seen
//! of the question, or of the session's train.
//!
//! # Invariants
//!
//! - **Q1** An answer is never longer than its question, so nobody can be flooded with the help of a listener.
//! - **Q2** Parsing never panics; what is no question gets no answer.

/// What packets of this protocol begin with; version 1.
const MAGIC: [u8; 8] = *b"apusdoc1";

/// Bytes of a question, and of an answer, at least.
pub(super) const SHORTEST: usize = 64;

const ANSWER: u8 = 0x80;

/// What a question is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Say what you see of this packet.
    Echo = 1,
    /// Count this packet, and say nothing.
    Count = 2,
    /// Say what you have counted in this session.
    Tally = 3,
}

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// Drawn at random by who asks.
    pub(super) session: u64,
    /// Tells the questions of a session apart.
    pub(super) number: u32,
    pub(super) kind: Kind,
    /// Traffic class that the answer shall have.
    pub(super) class: u8,
    /// Bytes that the answer shall have: as many as the question at most (Q1).
    pub(super) room: u16,
}

/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Traffic class with which the question came.
    pub(super) class: u8,
    /// Its length.
    pub(super) length: u32,
    /// Packets of the train.
    pub(super) packets: u32,
    /// System calls that they came with: fewer if packets were put together.
    pub(super) receives: u32,
}

impl Question {
    /// Writes it as the beginning of a packet.
    pub(super) fn emit(&self, out: &mut [u8; SHORTEST]) {
        out.fill(0);
        out[..8].copy_from_slice(&MAGIC);
        out[8..16].copy_from_slice(&self.session.to_be_bytes());
        out[16..20].copy_from_slice(&self.number.to_be_bytes());
        out[20] = self.kind as u8;
        out[21] = self.class;
        out[22..24].copy_from_slice(&self.room.to_be_bytes());
    }

    /// Reads a question (Q2).
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let head: &[u8; SHORTEST] = packet.first_chunk()?;
        if head[..8] != MAGIC {
            return None;
        }
        let kind = match head[20] {
            1 => Kind::Echo,
            2 => Kind::Count,
            3 => Kind::Tally,
            _ => return None,
        };
        Some(Self {
            session: u64::from_be_bytes(*head[8..].first_chunk()?),
            number: u32::from_be_bytes(*head[16..].first_chunk()?),
            kind,
            class: head[21],
            room: u16::from_be_bytes(*head[22..].first_chunk()?),
        })
    }

    /// The answer to a question of that length.
    pub(super) fn answer(&self, seen: &Seen, question: usize) -> Vec<u8> {
        let mut head = [0; SHORTEST];
        self.emit(&mut head);
        head[20] |= ANSWER;
        head[32] = seen.class;
        for (place, value) in [(36, seen.length), (40, seen.packets), (44, seen.receives)] {
            head[place..place + 4].copy_from_slice(&value.to_be_bytes());
        }
        let length = usize::from(self.room).clamp(SHORTEST, question.max(SHORTEST));
        let mut answer = head.to_vec();
        answer.resize(length, 0);
        answer
    }

    /// Reads the answer to this question; `None` if the packet is something else.
    pub(super) fn answered(&self, packet: &[u8]) -> Option<Seen> {
        let mut head: [u8; SHORTEST] = *packet.first_chunk()?;
        if head[20] & ANSWER == 0 {
            return None;
        }
        head[20] &= !ANSWER;
        let question = Self::parse(&head)?;
        if (question.session, question.number, question.kind)
            != (self.session, self.number, self.kind)
        {
            return None;
        }
        let number =
            |place: usize| head[place..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        Some(Seen {
            class: head[32],
            length: number(36)?,
            packets: number(40)?,
            receives: number(44)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: Question = Question {
        session: 0x0123_4567_89ab_cdef,
        number: 7,
        kind: Kind::Echo,
        class: 0xe0,
        room: 900,
    };

    fn bytes(question: &Question, length: usize) -> Vec<u8> {
        let mut head = [0; SHORTEST];
        question.emit(&mut head);
        let mut bytes = head.to_vec();
        bytes.resize(length, 0);
        bytes
    }

    #[test]
    fn questions_and_answers_are_read_as_they_are_written() {
        let packet = bytes(&QUESTION, 1_000);
        assert_eq!(Question::parse(&packet), Some(QUESTION));
        let seen = Seen { class: 0x20, length: 1_000, packets: 44, receives: 3 };
        let answer = QUESTION.answer(&seen, packet.len());
        assert_eq!((QUESTION.answered(&answer), answer.len()), (Some(seen), 900));
        assert_eq!(Question { number: 8, ..QUESTION }.answered(&answer), None);
        assert_eq!((Question::parse(&answer), QUESTION.answered(&packet)), (None, None));
    }

    #[test]
    fn an_answer_is_never_longer_than_its_question() {
        let greedy = Question { room: u16::MAX, ..QUESTION };
        assert_eq!(greedy.answer(&Seen::default(), 300).len(), 300);
        assert_eq!(Question { room: 0, ..QUESTION }.answer(&Seen::default(), 300).len(), SHORTEST);
    }

    #[test]
    fn what_is_no_question_is_none() {
        let packet = bytes(&QUESTION, SHORTEST);
        assert_eq!(Question::parse(&packet[..SHORTEST - 1]), None);
        for place in [0, 20] {
            let mut wrong = packet.clone();
            wrong[place] = 9;
            assert_eq!(Question::parse(&wrong), None);
        }
        assert_eq!(Question::parse(&[]), None);
        // Nothing panics, whatever it is.
        for length in 0..2 * SHORTEST {
            for filling in 0..=u8::MAX {
                let mut bytes = vec![filling; length];
                let begins = MAGIC.len().min(length);
                bytes[..begins].copy_from_slice(&MAGIC[..begins]);
                if let Some(question) = Question::parse(&bytes) {
                    assert!(question.answer(&Seen::default(), length).len() <= length);
                }
                assert_eq!(QUESTION.answered(&bytes), None);
            }
        }
    }
}
