//! The step from a function to its caller at one address: the position of the frame and of the
//! caller's saved registers. A rule is a row of an unwind table in a form that is small enough to
//! cache.
//!
//! Tables come from untrusted files. An expression has a bound of steps, and each stack has a bound
//! of expressions.

use gimli::{
    CfaRule, Encoding, EndianSlice, Evaluation, EvaluationResult, Expression, LittleEndian,
    Location, RegisterRule, UnwindExpression, UnwindTableRow, Value,
};

use super::registers::{Arch, Registers};

/// Steps of one expression at most. Compilers write fewer than ten.
const STEPS_MAX: u32 = 128;
/// Callee-saved registers, including the return address.
const KEPT_MAX: usize = 13;

pub(super) type Bytes<'b> = EndianSlice<'b, LittleEndian>;

/// The location of a value.
#[derive(Debug, Clone, Copy)]
enum How {
    /// Unknown.
    Lost,
    /// It is unchanged.
    Same,
    /// In memory, at this offset from the frame's address.
    At(i64),
    /// The frame's address plus this offset.
    Is(i64),
    /// In another register.
    In(u16),
    /// In memory, at the result of the expression.
    AtExpression(UnwindExpression<usize>),
    /// The result of the expression.
    IsExpression(UnwindExpression<usize>),
}

/// The source of the frame's address, which is the caller's stack pointer.
#[derive(Debug, Clone, Copy)]
enum FrameAddress {
    Register(u16, i64),
    Expression(UnwindExpression<usize>),
}

/// One row.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    frame: FrameAddress,
    kept: [(u16, How); KEPT_MAX],
    encoding: Encoding,
    /// Whether this frame is the kernel's return from a signal, so the caller was interrupted and
    /// did not call.
    pub(super) is_signal: bool,
    /// Whether it has no caller.
    pub(super) is_outermost: bool,
}

impl Rule {
    pub(super) fn new(
        row: &UnwindTableRow<usize>,
        arch: Arch,
        return_address: u16,
        encoding: Encoding,
        is_signal: bool,
    ) -> Self {
        let frame = match *row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                FrameAddress::Register(register.0, offset)
            }
            CfaRule::Expression(expression) => FrameAddress::Expression(expression),
        };
        // A callee-saved register that the table does not mention is unchanged.
        let mut kept = [(u16::MAX, How::Lost); KEPT_MAX];
        for (place, number) in kept.iter_mut().zip(arch.kept()) {
            let column = if number == arch.return_address() { return_address } else { number };
            let how = match row.register(gimli::Register(column)) {
                None | Some(RegisterRule::SameValue) => How::Same,
                Some(RegisterRule::Offset(offset)) => How::At(offset),
                Some(RegisterRule::ValOffset(offset)) => How::Is(offset),
                Some(RegisterRule::Register(register)) => How::In(register.0),
                Some(RegisterRule::Expression(expression)) => How::AtExpression(expression),
                Some(RegisterRule::ValExpression(expression)) => How::IsExpression(expression),
                Some(_) => How::Lost,
            };
            *place = (number, how);
        }
        let of = |number| kept.iter().find(|(kept, _)| *kept == number).map(|(_, how)| how);
        let is_outermost = match (of(arch.return_address()), arch) {
            (Some(How::Lost), _) => true,
            // The call itself puts the return address on the stack.
            (Some(How::Same), Arch::X86_64) => true,
            _ => false,
        };
        Self { frame, kept, encoding, is_signal, is_outermost }
    }

    /// The registers of the caller, including the return address.
    pub(super) fn apply(
        &self,
        registers: &Registers,
        section: &[u8],
        memory: &mut Memory<'_>,
    ) -> Option<Registers> {
        let arch = registers.arch;
        let mut with = Run { section, encoding: self.encoding, registers, memory };
        let frame = match &self.frame {
            FrameAddress::Register(number, offset) => {
                registers.get(*number)?.checked_add_signed(*offset)?
            }
            FrameAddress::Expression(expression) => with.evaluate(expression, None)?,
        };
        let mut caller = Registers::none(arch);
        for (number, how) in self.kept.iter().filter(|(number, _)| *number != u16::MAX) {
            let value = match how {
                How::Lost => None,
                How::Same if *number == arch.stack_pointer() => Some(frame),
                How::Same => registers.get(*number),
                How::At(offset) => {
                    frame.checked_add_signed(*offset).and_then(|at| with.memory.word(at))
                }
                How::Is(offset) => frame.checked_add_signed(*offset),
                How::In(other) => registers.get(*other),
                How::AtExpression(expression) => {
                    with.evaluate(expression, Some(frame)).and_then(|at| with.memory.word(at))
                }
                How::IsExpression(expression) => with.evaluate(expression, Some(frame)),
            };
            caller.set(*number, value);
        }
        Some(caller)
    }
}

/// The state that an expression may use.
struct Run<'r, 'm> {
    section: &'r [u8],
    encoding: Encoding,
    registers: &'r Registers,
    memory: &'r mut Memory<'m>,
}

impl Run<'_, '_> {
    fn evaluate(
        &mut self,
        expression: &UnwindExpression<usize>,
        initial: Option<u64>,
    ) -> Option<u64> {
        self.memory.expressions_left = self.memory.expressions_left.checked_sub(1)?;
        let end = expression.offset.checked_add(expression.length)?;
        let bytes = self.section.get(expression.offset..end)?;
        let Expression(bytes) = Expression(EndianSlice::new(bytes, LittleEndian));
        let mut evaluation: Evaluation<Bytes<'_>> = Evaluation::new(bytes, self.encoding);
        evaluation.set_max_iterations(STEPS_MAX);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().ok()?;
        // Each request for a value counts as a step too.
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.registers.get(register.0)?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, space: None, .. } => {
                    let value = self.memory.word(address)?;
                    evaluation.resume_with_memory(Value::Generic(value)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result().last()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}

/// The copy of a stack, and the work that it may still cause.
#[derive(Debug)]
pub(crate) struct Memory<'m> {
    start: u64,
    bytes: &'m [u8],
    expressions_left: u32,
    /// Whether an address beyond the end of the copy was read.
    pub(super) is_exceeded: bool,
}

impl<'m> Memory<'m> {
    pub(super) fn new(start: u64, bytes: &'m [u8], expressions: u32) -> Self {
        Self { start, bytes, expressions_left: expressions, is_exceeded: false }
    }

    /// The word at an address.
    pub(super) fn word(&mut self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let word = at.checked_add(8).and_then(|end| self.bytes.get(at..end));
        self.is_exceeded |= word.is_none();
        word?.try_into().ok().map(u64::from_le_bytes)
    }
}
