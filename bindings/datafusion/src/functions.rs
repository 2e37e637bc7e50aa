//! The functions that queries call.

use crate::columns;
use crate::models::{Models, Ready};
use crate::rows::{self, PICTURES};
use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::prelude::SessionContext;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The network that `pose` calls.
const POSE: &str = "pose";

/// Registers [`functions`].
pub fn register(context: &SessionContext, models: &Models) {
    for function in functions(Some(models)) {
        context.register_udf(function);
    }
}

/// `pose(image)` and `infer(network, image)`. Without models they can be planned and not called: a scheduler and those
/// who send it queries need no more.
pub fn functions(models: Option<&Models>) -> Vec<ScalarUDF> {
    [Kind::Pose, Kind::Infer].map(|kind| function(kind, models)).into()
}

fn function(kind: Kind, models: Option<&Models>) -> ScalarUDF {
    let of = |pictures: DataType| match kind {
        Kind::Pose => TypeSignature::Exact(vec![pictures]),
        Kind::Infer => TypeSignature::Exact(vec![DataType::Utf8, pictures]),
    };
    // The same picture gives the same, but for the last bits: they depend on how many pictures shared a run.
    let signature = Signature::one_of(PICTURES.map(of).into(), Volatility::Stable);
    AsyncScalarUDF::new(Arc::new(Function { kind, models: models.cloned(), signature })).into_scalar_udf()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Pose,
    Infer,
}

#[derive(Debug)]
struct Function {
    kind: Kind,
    models: Option<Models>,
    signature: Signature,
}

/// Plans are compared and sent by name; which models a process has is its own affair.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Pose => "pose",
            Kind::Infer => "infer",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            Kind::Pose => columns::poses_type(),
            Kind::Infer => columns::outputs_type(),
        })
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{} is awaited", self.name())))
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Function {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let models = self.models.as_ref().ok_or_else(|| {
            DataFusionError::Execution(format!("{}: this process has no networks", self.name()))
        })?;
        let rows = args.number_rows;
        let mut arguments = args.args.iter().map(|argument| argument.to_array(rows));
        let mut next = || {
            let missing = || DataFusionError::Internal(format!("{} without an argument", self.name()));
            arguments.next().ok_or_else(missing)?
        };
        let column = match self.kind {
            Kind::Pose => {
                let ready = models.ready(POSE).await?;
                if let Err(error) = &ready.network.posenet {
                    return Err(DataFusionError::Execution(format!("network {POSE:?}: {error}")));
                }
                let meaning: rows::Meaning<_> = |network, outputs, size| network.poses(&outputs, size);
                let found = rows::run(models, vec![Some(ready); rows], next()?, meaning).await?;
                columns::poses(&found)?
            }
            Kind::Infer => {
                let networks = named(models, &next()?).await?;
                let meaning: rows::Meaning<_> = |network, outputs, _| network.outputs(outputs);
                let found = rows::run(models, networks, next()?, meaning).await?;
                columns::outputs(&found)?
            }
        };
        Ok(ColumnarValue::Array(column))
    }
}

/// The network of each row, by a column of names.
async fn named(models: &Models, names: &ArrayRef) -> Result<Vec<Option<Ready>>> {
    let names = cast(names, &DataType::Utf8)?;
    let names = names.as_string_opt::<i32>().ok_or_else(|| {
        DataFusionError::Internal(format!("found names of {}, wanted Utf8", names.data_type()))
    })?;
    let mut ready: BTreeMap<&str, Ready> = BTreeMap::new();
    for name in names.iter().flatten() {
        if !ready.contains_key(name) {
            ready.insert(name, models.ready(name).await?);
        }
    }
    Ok(names.iter().map(|name| name.and_then(|name| ready.get(name).cloned())).collect())
}
