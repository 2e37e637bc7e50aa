//! Functions of integers, and changes of type.

use super::{Graph, TensorType, Term, Value};
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::elementwise::Function;
use crate::ops::integer::{Argument, Integer, IntegerFunction};
use crate::ops::operator::{Lowered, Operator};
use crate::word;
use std::sync::Arc;

/// What a function of floats is of integers, where it is one.
fn of_integers(function: Function) -> Option<IntegerFunction> {
    Some(match function {
        Function::Add => IntegerFunction::Add,
        Function::Sub => IntegerFunction::Sub,
        Function::Mul | Function::Square => IntegerFunction::Mul,
        Function::Div => IntegerFunction::Div,
        Function::FloorDiv => IntegerFunction::FloorDiv,
        Function::FloorMod => IntegerFunction::FloorMod,
        Function::Pow => IntegerFunction::Pow,
        Function::Maximum | Function::Relu => IntegerFunction::Maximum,
        Function::Minimum => IntegerFunction::Minimum,
        Function::Abs => IntegerFunction::Abs,
        Function::Neg => IntegerFunction::Neg,
        Function::Sign => IntegerFunction::Sign,
        Function::Equal => IntegerFunction::Equal,
        Function::NotEqual => IntegerFunction::NotEqual,
        Function::Less => IntegerFunction::Less,
        Function::LessEqual => IntegerFunction::LessEqual,
        Function::Greater => IntegerFunction::Greater,
        Function::GreaterEqual => IntegerFunction::GreaterEqual,
        Function::Select => IntegerFunction::Select,
        Function::Clamp => IntegerFunction::Clamp,
        _ => return None,
    })
}

impl Graph {
    /// Adds a function of each element of integers of 32 or 64 bits: `terms` are values of one such type, and whole
    /// numbers. They fit each other as those of [`Graph::elementwise`] do, which takes the functions that floats have
    /// too. Integers of fewer bits, and booleans, are cast to such a type first ([`Graph::cast`]).
    ///
    /// ```
    /// use diptych::nn::IntegerFunction::{FloorMod, Mul, ShiftRight};
    /// use diptych::{Backend, Context, DType, Dim, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let ids = graph.typed_input("ids", DType::I32, &[Dim::Fixed(2)])?;
    /// let mixed = graph.integer("mixed", Mul, &[ids.into(), 40_503.into()])?;
    /// let high = graph.integer("high", ShiftRight, &[mixed.into(), 4.into()])?;
    /// let bucket = graph.integer("bucket", FloorMod, &[high.into(), 1000.into()])?;
    /// graph.output(bucket)?;
    /// let mut session = Session::new(&Context::new(Backend::Auto)?, &graph, SessionOptions::default())?;
    /// let given = HostTensor::of(Dims::new(&[2])?, vec![7, 50_000])?;
    /// assert_eq!(session.run(&[("ids", &given)])?[0].elements::<i32>(), Some(&[720, 875][..]));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes or types do not fit, there are not as many terms as the function takes, or all are numbers.
    pub fn integer(&mut self, name: &str, function: IntegerFunction, terms: &[Term]) -> Result<Value> {
        let (mut arguments, mut inputs) = (Vec::with_capacity(terms.len()), Vec::new());
        for term in terms {
            arguments.push(match *term {
                Term::Integer(number) => Argument::Number(number),
                Term::Number(number) if number.trunc() == number && number.abs() < 9e18 => {
                    Argument::Number(number as i64)
                }
                Term::Number(number) => {
                    let found = format!("{number} beside integers");
                    return Err(Error::shape("integer", found, "a whole number").at_node(name));
                }
                Term::Value(value) => {
                    let known = inputs.iter().position(|known| *known == value);
                    let input = known.unwrap_or(inputs.len());
                    if known.is_none() {
                        inputs.push(value);
                    }
                    Argument::Input(input as u8)
                }
            });
        }
        self.add_integer(name, Integer::new(function, arguments), &inputs)
    }

    fn add_integer(&mut self, name: &str, operator: Integer, inputs: &[Value]) -> Result<Value> {
        let inputs: Vec<(Operand, Value)> =
            inputs.iter().zip(0..).map(|(&value, input)| (Operand::Arg(input), value)).collect();
        match self.add(name, Arc::new(operator), &inputs)?[..] {
            [output] => Ok(output),
            _ => Err(Error::Internal(format!("node {name:?} has not one output"))),
        }
    }

    /// A function of each element where a value is of integers; `None` where all are numbers in f32.
    pub(super) fn of_integers(
        &mut self,
        name: &str,
        function: Function,
        terms: &[Term],
    ) -> Result<Option<Value>> {
        let mut integer = None;
        for term in terms {
            if let Term::Value(value) = *term {
                let TensorType { dtype, .. } = self.tensor_type(value)?;
                integer = integer.or((dtype.word() != DType::F32).then_some(dtype));
            }
        }
        let Some(dtype) = integer else { return Ok(None) };
        let Some(of_integers) = of_integers(function) else {
            if let Some(floats) = self.of_floats(terms)? {
                return self.elementwise(name, function, &floats).map(Some);
            }
            let found = format!("{} of {dtype}", function.name());
            let wanted = "floats (Graph::cast changes types)";
            return Err(Error::shape("elementwise", found, wanted).at_node(name));
        };
        let terms = &self.of_one_type(function, terms, dtype)?[..];
        let with = |more: Term| [terms, &[more]].concat();
        let value = match function {
            Function::Square => self.integer(name, of_integers, &terms.repeat(2)),
            Function::Relu => self.integer(name, of_integers, &with(Term::Integer(0))),
            _ => self.integer(name, of_integers, terms),
        };
        value.map(Some)
    }

    /// Adds a change of type. A float becomes an integer by being cut off towards zero; what is beyond the range of 32 or
    /// 64 bits becomes the nearest end, and a NaN 0. An integer keeps the lowest bits that the new type has. Anything but
    /// 0 is true.
    ///
    /// ```
    /// use diptych::{Backend, Context, DType, Dim, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.typed_input("x", DType::I32, &[Dim::Fixed(3)])?;
    /// let bytes = graph.cast("bytes", x, DType::U8)?;
    /// graph.output(bytes)?;
    /// let mut session = Session::new(&Context::new(Backend::Auto)?, &graph, SessionOptions::default())?;
    /// let given = HostTensor::of(Dims::new(&[3])?, vec![200, 300, -1])?;
    /// assert_eq!(session.run(&[("x", &given)])?[0].elements::<u8>(), Some(&[200, 44, 255][..]));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value is of another graph.
    pub fn cast(&mut self, name: &str, value: Value, to: DType) -> Result<Value> {
        let TensorType { dtype: from, dims } = self.tensor_type(value)?;
        if from == to {
            return Ok(value);
        }
        let within = |from: DType| match (from.range(), to.range()) {
            (Some([low, high]), Some([least, most])) => least <= low && high <= most,
            (_, None) => true,
            (None, Some(_)) => false,
        };
        let result = match (from.word(), to.word()) {
            // Between integers, or to or from one of 32 or 64 bits.
            (DType::F32, DType::I32 | DType::U32 | DType::I64)
            | (_, DType::I32 | DType::U32 | DType::I64) => {
                self.add_integer(name, Integer::convert(to), &[value])?
            }
            (DType::F32, _) if to == DType::Bool => {
                self.elementwise(name, Function::NotEqual, &[value.into(), 0.0.into()])?
            }
            // The same numbers, under another name of their type.
            (DType::F32, _) if within(from) => {
                let extents: Vec<_> = dims.extents().iter().map(|&extent| extent.into()).collect();
                self.reshape(name, value, &extents)?
            }
            (_, _) if to == DType::Bool => {
                self.integer(name, IntegerFunction::NotEqual, &[value.into(), Term::Integer(0)])?
            }
            (word, _) => {
                let mut value = value;
                if word == DType::F32 {
                    let part = format!("{name}/integer");
                    value = self.add_integer(&part, Integer::convert(DType::I32), &[value])?;
                }
                if !to.is_float() && !within(from) {
                    value = self.wrapped(name, value, to)?;
                }
                self.add_integer(name, Integer::convert(DType::F32), &[value])?
            }
        };
        self.retype(result, to)?;
        Ok(result)
    }

    /// Integers of 32 or 64 bits as those of at most 16, as which their lowest bits are.
    fn wrapped(&mut self, name: &str, value: Value, to: DType) -> Result<Value> {
        let TensorType { dtype, .. } = self.tensor_type(value)?;
        let bits = 8 * to.bytes() as i64;
        let mask = self.integer(
            &format!("{name}/low"),
            IntegerFunction::BitAnd,
            &[value.into(), Term::Integer((1 << bits) - 1)],
        )?;
        if to.range().is_none_or(|[least, _]| least >= 0) {
            return Ok(mask);
        }
        // The sign's bit counts negatively.
        let signed = if dtype == DType::U32 {
            self.add_integer(&format!("{name}/signed"), Integer::convert(DType::I32), &[mask])?
        } else {
            mask
        };
        let half = 1i64 << (bits - 1);
        let flipped = self.integer(
            &format!("{name}/flipped"),
            IntegerFunction::BitXor,
            &[signed.into(), Term::Integer(half)],
        )?;
        self.integer(&format!("{name}/wrapped"), IntegerFunction::Sub, &[flipped.into(), Term::Integer(half)])
    }

    /// From now on casts operands of another type than an operator takes, where it takes no other: integers to floats,
    /// and numbers in f32 beside integers to those.
    #[doc(hidden)]
    pub fn cast_where_needed(&mut self) {
        self.casts.get_or_insert_default();
    }

    /// The operands of a node that is to be added, cast to the types that `operator` takes; `None` if nothing is cast.
    pub(super) fn cast_operands(
        &mut self,
        operator: &dyn Operator,
        inputs: &[(Operand, Value)],
    ) -> Result<Option<Vec<(Operand, Value)>>> {
        let mut words = Vec::with_capacity(inputs.len());
        for (_, value) in inputs {
            words.push(self.tensor_type(*value)?.dtype.word());
        }
        if self.casts.is_none() || words.iter().all(|word| *word == DType::F32) {
            return Ok(None);
        }
        let arguments = self.arguments(inputs)?;
        let taken = match self.lower(operator, &arguments, Precision::F32) {
            Ok(Lowered::View(_)) => return Ok(None),
            Ok(Lowered::Op(op)) => op.operands(),
            // Why it cannot be is said when it is checked.
            Err(_) => return Ok(None),
        };
        let mut all = inputs.to_vec();
        for ((operand, value), word) in all.iter_mut().zip(words) {
            let Some(info) = taken.iter().find(|info| info.operand == *operand) else { continue };
            if info.dtype != word {
                *value = self.cast_once(*value, info.dtype)?;
            }
        }
        Ok(Some(all))
    }

    /// A value in another type; the same for all that ask for it.
    fn cast_once(&mut self, value: Value, to: DType) -> Result<Value> {
        if let Some(known) = self.casts.as_ref().and_then(|casts| casts.get(&(value, to))) {
            return Ok(*known);
        }
        let name = format!("{}/{to}", self.name(value)?);
        let cast = match self.tensor(value)? {
            // A constant is converted here, so that it may be one of weights.
            Some(tensor) => {
                let words = word::of_tensor(tensor, to.word(), to, &name)?;
                let tensor = word::to_tensor(tensor.dims(), to, to.word(), &words)?;
                self.constant(&name, tensor)
            }
            None => self.cast(&name, value, to)?,
        };
        if let Some(casts) = &mut self.casts {
            casts.insert((value, to), cast);
        }
        Ok(cast)
    }

    /// `terms` with those of floats beside integers as integers, where operands are cast.
    fn of_one_type(&mut self, function: Function, terms: &[Term], to: DType) -> Result<Vec<Term>> {
        let mut all = terms.to_vec();
        let condition = function == Function::Select;
        for (place, term) in all.iter_mut().enumerate() {
            if let Term::Value(value) = *term
                && !(condition && place == 0)
                && self.casts.is_some()
                && self.tensor_type(value)?.dtype.word() != to.word()
            {
                *term = Term::Value(self.cast_once(value, to)?);
            }
        }
        Ok(all)
    }

    /// `values` with those of floats beside integers as integers, where operands are cast.
    pub(super) fn of_one_word(&mut self, values: &[Value]) -> Result<Vec<Value>> {
        let mut all = values.to_vec();
        if self.casts.is_none() {
            return Ok(all);
        }
        let types = all.iter().map(|&value| Ok(self.tensor_type(value)?.dtype));
        let types = types.collect::<Result<Vec<DType>>>()?;
        if let Some(&to) = types.iter().find(|dtype| dtype.word() != DType::F32) {
            for (value, dtype) in all.iter_mut().zip(types) {
                if dtype.word() != to.word() {
                    *value = self.cast_once(*value, to)?;
                }
            }
        }
        Ok(all)
    }

    /// `terms` as floats, where operands are cast.
    fn of_floats(&mut self, terms: &[Term]) -> Result<Option<Vec<Term>>> {
        if self.casts.is_none() {
            return Ok(None);
        }
        let mut all = terms.to_vec();
        for term in &mut all {
            if let Term::Value(value) = *term
                && self.tensor_type(value)?.dtype.word() != DType::F32
            {
                *term = Term::Value(self.cast_once(value, DType::F32)?);
            }
        }
        Ok(Some(all))
    }
}
