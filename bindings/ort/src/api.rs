//! The table of functions.

use crate::{
    binding, environment, info, memory, metadata, options, pointers, run, run_options, session, status,
    tensor,
};
use ort_sys::{OrtApi, stub};
use std::ffi::c_char;

/// What gives no status, and is not offered: it does nothing, or gives NULL.
const STUB: OrtApi = stub::api();

unsafe extern "system" fn build_info() -> *const c_char {
    concat!("diptych-ort ", env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// A function in the place of one that is not offered: it takes as many arguments, does not read them, and returns an error.
macro_rules! refused {
    ($name:ident $($argument:ident)*) => {{
        unsafe extern "system" fn refused<$($argument),*>($(_: $argument),*) -> ort_sys::OrtStatusPtr {
            let reason = "diptych-ort's README says which functions there are";
            status::unsupported(concat!("ONNX Runtime's function ", stringify!($name)), reason).status()
        }
        refused
    }};
}

/// Every field is named, so that a new one is an error here.
macro_rules! table {
    (
        answered { $($module:ident { $($answered:ident)* })* }
        released { $($released:ident)* }
        refused { $($refused:ident($($argument:ident)*))* }
        absent { $($absent:ident)* }
    ) => {
        OrtApi {
            GetBuildInfoString: build_info,
            $($($answered: $module::$answered,)*)*
            $($released: pointers::release,)*
            $($refused: refused!($refused $($argument)*),)*
            $($absent: STUB.$absent,)*
        }
    };
}

/// The functions that [`ort::set_api`](https://docs.rs/ort/2.0.0-rc.15/ort/fn.set_api.html) takes.
///
/// ```
/// ort::set_api(diptych_ort::api());
/// assert!(ort::info().starts_with("diptych-ort "));
/// ```
pub const fn api() -> OrtApi {
    table! {
        answered {
            status {
                CreateStatus GetErrorCode GetErrorMessage ReleaseStatus
            }
            environment {
                CreateEnv CreateEnvWithCustomLogger EnableTelemetryEvents DisableTelemetryEvents
                CreateEnvWithGlobalThreadPools CreateThreadingOptions GetAvailableProviders
                ReleaseAvailableProviders SetLanguageProjection SetGlobalIntraOpNumThreads
                SetGlobalInterOpNumThreads SetGlobalSpinControl
                CreateEnvWithCustomLoggerAndGlobalThreadPools UpdateEnvWithCustomLogLevel GetEpDevices
                CreateEnvWithOptions
            }
            options {
                CreateSessionOptions CloneSessionOptions SetSessionExecutionMode EnableMemPattern
                DisableMemPattern EnableCpuMemArena DisableCpuMemArena SetSessionLogId
                SetSessionLogVerbosityLevel SetSessionLogSeverityLevel SetSessionGraphOptimizationLevel
                SetIntraOpNumThreads SetInterOpNumThreads DisablePerSessionThreads
                AddFreeDimensionOverrideByName AddSessionConfigEntry AddInitializer
                CreatePrepackedWeightsContainer AddExternalInitializers
                SessionOptionsAppendExecutionProvider HasSessionConfigEntry GetSessionConfigEntry
                SetUserLoggingFunction SetDeterministicCompute SessionOptionsSetLoadCancellationFlag
                SessionOptionsSetEpSelectionPolicy GetMemPatternEnabled GetSessionExecutionMode
            }
            session {
                CreateSession CreateSessionFromArray SessionGetInputCount SessionGetOutputCount
                SessionGetOverridableInitializerCount SessionGetInputTypeInfo SessionGetOutputTypeInfo
                SessionGetOverridableInitializerTypeInfo SessionGetInputName SessionGetOutputName
                SessionGetOverridableInitializerName CreateSessionWithPrepackedWeightsContainer
                CreateSessionFromArrayWithPrepackedWeightsContainer SetEpDynamicOptions
                SessionGetMemoryInfoForInputs SessionGetMemoryInfoForOutputs
            }
            metadata {
                SessionGetModelMetadata ModelMetadataGetProducerName ModelMetadataGetGraphName
                ModelMetadataGetDomain ModelMetadataGetDescription ModelMetadataLookupCustomMetadataMap
                ModelMetadataGetVersion ModelMetadataGetCustomMetadataMapKeys
            }
            info {
                CastTypeInfoToTensorInfo GetOnnxTypeFromTypeInfo CreateTensorTypeAndShapeInfo
                SetTensorElementType SetDimensions GetTensorElementType GetDimensionsCount GetDimensions
                GetSymbolicDimensions GetTensorShapeElementCount GetTensorTypeAndShape GetTypeInfo
                GetDenotationFromTypeInfo CastTypeInfoToMapTypeInfo CastTypeInfoToSequenceTypeInfo
                CastTypeInfoToOptionalTypeInfo SetSymbolicDimensions TensorTypeAndShape_HasShape
            }
            tensor {
                CreateTensorAsOrtValue CreateTensorWithDataAsOrtValue IsTensor GetTensorMutableData
                GetValueType TensorAt IsSparseTensor HasValue GetTensorMemoryInfo
                CreateTensorWithDataAndDeleterAsOrtValue GetTensorSizeInBytes GetTensorData CopyTensors
                GetTensorElementTypeAndShapeDataReference
            }
            memory {
                CreateMemoryInfo CreateCpuMemoryInfo CompareMemoryInfo MemoryInfoGetName MemoryInfoGetId
                MemoryInfoGetMemType MemoryInfoGetType AllocatorAlloc AllocatorFree AllocatorGetInfo
                GetAllocatorWithDefaultOptions CreateAllocator ReleaseAllocator MemoryInfoGetDeviceType
                MemoryInfoGetDeviceMemType MemoryInfoGetVendorId
            }
            run_options {
                CreateRunOptions RunOptionsSetRunLogVerbosityLevel RunOptionsSetRunLogSeverityLevel
                RunOptionsSetRunTag RunOptionsGetRunLogVerbosityLevel RunOptionsGetRunLogSeverityLevel
                RunOptionsGetRunTag RunOptionsSetTerminate RunOptionsUnsetTerminate AddRunConfigEntry
                GetRunConfigEntry
            }
            run {
                Run RunAsync
            }
            binding {
                RunWithBinding CreateIoBinding BindInput BindOutput BindOutputToDevice
                GetBoundOutputNames GetBoundOutputValues ClearBoundInputs ClearBoundOutputs
                SynchronizeBoundInputs SynchronizeBoundOutputs
            }
        }
        released {
            ReleaseEnv ReleaseIoBinding ReleaseMemoryInfo ReleaseModelMetadata
            ReleasePrepackedWeightsContainer ReleaseRunOptions ReleaseSession ReleaseSessionOptions
            ReleaseTensorTypeAndShapeInfo ReleaseThreadingOptions ReleaseTypeInfo ReleaseValue
        }
        refused {
            SetOptimizedModelFilePath(A B) EnableProfiling(A B) DisableProfiling(A)
            CreateCustomOpDomain(A B) CustomOpDomain_Add(A B) AddCustomOpDomain(A B)
            RegisterCustomOpsLibrary(A B C) FillStringTensor(A B C) GetStringTensorDataLength(A B)
            GetStringTensorContent(A B C D E) AddFreeDimensionOverride(A B C) GetValue(A B C D)
            GetValueCount(A B) CreateValue(A B C D) CreateOpaqueValue(A B C D E) GetOpaqueValue(A B C D E)
            KernelInfoGetAttribute_float(A B C) KernelInfoGetAttribute_int64(A B C)
            KernelInfoGetAttribute_string(A B C D) KernelContext_GetInputCount(A B)
            KernelContext_GetOutputCount(A B) KernelContext_GetInput(A B C)
            KernelContext_GetOutput(A B C D E) GetMapKeyType(A B) GetMapValueType(A B)
            GetSequenceElementType(A B) SessionEndProfiling(A B C) GetStringTensorElementLength(A B C)
            GetStringTensorElement(A B C D) FillStringTensorElement(A B C) CreateAndRegisterAllocator(A B C)
            SessionGetProfilingStartTimeNs(A B) SessionOptionsAppendExecutionProvider_CUDA(A B)
            SessionOptionsAppendExecutionProvider_ROCM(A B)
            SessionOptionsAppendExecutionProvider_OpenVINO(A B) SetGlobalDenormalAsZero(A)
            CreateArenaCfg(A B C D E) ModelMetadataGetGraphDescription(A B C)
            SessionOptionsAppendExecutionProvider_TensorRT(A B) SetCurrentGpuDeviceId(A)
            GetCurrentGpuDeviceId(A) KernelInfoGetAttributeArray_float(A B C D)
            KernelInfoGetAttributeArray_int64(A B C D) CreateArenaCfgV2(A B C D)
            SessionOptionsAppendExecutionProvider_TensorRT_V2(A B) CreateTensorRTProviderOptions(A)
            UpdateTensorRTProviderOptions(A B C D) GetTensorRTProviderOptionsAsString(A B C)
            EnableOrtCustomOps(A) RegisterAllocator(A B) UnregisterAllocator(A B)
            CreateSparseTensorAsOrtValue(A B C D E) FillSparseTensorCoo(A B C D E F G)
            FillSparseTensorCsr(A B C D E F G H I) FillSparseTensorBlockSparse(A B C D E F G H)
            CreateSparseTensorWithValuesAsOrtValue(A B C D E F G H) UseCooIndices(A B C)
            UseCsrIndices(A B C D E) UseBlockSparseIndices(A B C D) GetSparseTensorFormat(A B)
            GetSparseTensorValuesTypeAndShape(A B) GetSparseTensorValues(A B)
            GetSparseTensorIndicesTypeShape(A B C) GetSparseTensorIndices(A B C D)
            KernelContext_GetGPUComputeStream(A B) GetExecutionProviderApi(A B C)
            SessionOptionsSetCustomCreateThreadFn(A B) SessionOptionsSetCustomThreadCreationOptions(A B)
            SessionOptionsSetCustomJoinThreadFn(A B) SetGlobalCustomCreateThreadFn(A B)
            SetGlobalCustomThreadCreationOptions(A B) SetGlobalCustomJoinThreadFn(A B)
            SessionOptionsAppendExecutionProvider_CUDA_V2(A B) CreateCUDAProviderOptions(A)
            UpdateCUDAProviderOptions(A B C D) GetCUDAProviderOptionsAsString(A B C)
            SessionOptionsAppendExecutionProvider_MIGraphX(A B) CreateOpAttr(A B C D E)
            CreateOp(A B C D E F G H I J K L) InvokeOp(A B C D E F) CopyKernelInfo(A B)
            SessionOptionsAppendExecutionProvider_CANN(A B) CreateCANNProviderOptions(A)
            UpdateCANNProviderOptions(A B C D) GetCANNProviderOptionsAsString(A B C)
            SetGlobalIntraOpThreadAffinity(A B) RegisterCustomOpsLibrary_V2(A B)
            RegisterCustomOpsUsingFunction(A B) KernelInfo_GetInputCount(A B) KernelInfo_GetOutputCount(A B)
            KernelInfo_GetInputName(A B C D) KernelInfo_GetOutputName(A B C D)
            KernelInfo_GetInputTypeInfo(A B C) KernelInfo_GetOutputTypeInfo(A B C)
            KernelInfoGetAttribute_tensor(A B C D) SessionOptionsAppendExecutionProvider_Dnnl(A B)
            CreateDnnlProviderOptions(A) UpdateDnnlProviderOptions(A B C D)
            GetDnnlProviderOptionsAsString(A B C) KernelInfo_GetNodeName(A B C) KernelInfo_GetLogger(A B)
            KernelContext_GetLogger(A B) Logger_LogMessage(A B C D E F) Logger_GetLoggingSeverityLevel(A B)
            KernelInfoGetConstantInput_tensor(A B C D) GetOptionalContainedTypeInfo(A B)
            GetResizedStringTensorElementBuffer(A B C D) KernelContext_GetAllocator(A B C)
            CreateROCMProviderOptions(A) UpdateROCMProviderOptions(A B C D)
            GetROCMProviderOptionsAsString(A B C) CreateAndRegisterAllocatorV2(A B C D E F G)
            UpdateTensorRTProviderOptionsWithValue(A B C) GetTensorRTProviderOptionsByName(A B C)
            UpdateCUDAProviderOptionsWithValue(A B C) GetCUDAProviderOptionsByName(A B C)
            KernelContext_GetResource(A B C D) ShapeInferContext_GetInputCount(A B)
            ShapeInferContext_GetInputTypeShape(A B C) ShapeInferContext_GetAttribute(A B C)
            ShapeInferContext_SetOutputTypeShape(A B C) ReadOpAttr(A B C D E)
            KernelContext_ParallelFor(A B C D E) SessionOptionsAppendExecutionProvider_OpenVINO_V2(A B C D)
            SessionOptionsAppendExecutionProvider_VitisAI(A B C D) KernelContext_GetScratchBuffer(A B C D)
            KernelInfoGetAllocator(A B C) AddExternalInitializersFromMemory(A B C D E)
            CreateLoraAdapter(A B C) CreateLoraAdapterFromArray(A B C D) RunOptionsAddActiveLoraAdapter(A B)
            GetValueInfoName(A B) GetValueInfoTypeInfo(A B) RegisterExecutionProviderLibrary(A B C)
            UnregisterExecutionProviderLibrary(A B) SessionOptionsAppendExecutionProvider_V2(A B C D E F G)
            SessionOptionsSetEpSelectionPolicyDelegate(A B C) AllocatorGetStats(A B)
            CreateMemoryInfo_V2(A B C D E F G H) ValueInfo_GetValueProducer(A B C)
            ValueInfo_GetValueNumConsumers(A B) ValueInfo_GetValueConsumers(A B C D)
            ValueInfo_GetInitializerValue(A B) ValueInfo_GetExternalInitializerInfo(A B)
            ValueInfo_IsRequiredGraphInput(A B) ValueInfo_IsOptionalGraphInput(A B)
            ValueInfo_IsGraphOutput(A B) ValueInfo_IsConstantInitializer(A B)
            ValueInfo_IsFromOuterScope(A B) Graph_GetName(A B) Graph_GetModelPath(A B)
            Graph_GetOnnxIRVersion(A B) Graph_GetNumOperatorSets(A B) Graph_GetOperatorSets(A B C D)
            Graph_GetNumInputs(A B) Graph_GetInputs(A B C) Graph_GetNumOutputs(A B) Graph_GetOutputs(A B C)
            Graph_GetNumInitializers(A B) Graph_GetInitializers(A B C) Graph_GetNumNodes(A B)
            Graph_GetNodes(A B C) Graph_GetParentNode(A B) Graph_GetGraphView(A B C D) Node_GetId(A B)
            Node_GetName(A B) Node_GetOperatorType(A B) Node_GetDomain(A B) Node_GetSinceVersion(A B)
            Node_GetNumInputs(A B) Node_GetInputs(A B C) Node_GetNumOutputs(A B) Node_GetOutputs(A B C)
            Node_GetNumImplicitInputs(A B) Node_GetImplicitInputs(A B C) Node_GetNumAttributes(A B)
            Node_GetAttributes(A B C) Node_GetAttributeByName(A B C)
            OpAttr_GetTensorAttributeAsOrtValue(A B) OpAttr_GetType(A B) OpAttr_GetName(A B)
            Node_GetNumSubgraphs(A B) Node_GetSubgraphs(A B C D) Node_GetGraph(A B) Node_GetEpName(A B)
            CreateSharedAllocator(A B C D E F) GetSharedAllocator(A B C) ReleaseSharedAllocator(A B C)
            GetSessionOptionsConfigEntries(A B) SessionGetEpDeviceForInputs(A B C)
            CreateSyncStreamForEpDevice(A B C) Graph_GetModelMetadata(A B)
            GetModelCompatibilityForEpDevices(A B C D) CreateExternalInitializerInfo(A B C D)
            KernelInfo_GetConfigEntries(A B) KernelInfo_GetOperatorDomain(A B C)
            KernelInfo_GetOperatorType(A B C) KernelInfo_GetOperatorSinceVersion(A B)
            SessionGetEpDeviceForOutputs(A B C) GetNumHardwareDevices(A B) GetHardwareDevices(A B C)
            GetHardwareDeviceEpIncompatibilityDetails(A B C D)
            DeviceEpIncompatibilityDetails_GetReasonsBitmask(A B)
            DeviceEpIncompatibilityDetails_GetNotes(A B) DeviceEpIncompatibilityDetails_GetErrorCode(A B)
            GetCompatibilityInfoFromModel(A B C D) GetCompatibilityInfoFromModelBytes(A B C D E)
            Session_GetEpGraphAssignmentInfo(A B C) EpAssignedSubgraph_GetEpName(A B)
            EpAssignedSubgraph_GetNodes(A B C) EpAssignedNode_GetName(A B) EpAssignedNode_GetDomain(A B)
            EpAssignedNode_GetOperatorType(A B) RunOptionsEnableProfiling(A B) RunOptionsDisableProfiling(A)
            KernelInfoGetAttributeArray_string(A B C D E) SetPerSessionThreadPoolCallbacks(A B)
            SessionReleaseCapturedGraph(A B) KernelContext_GetSyncStream(A B)
            SessionOptionsSetWeightlessSourceModelBuffer(A B C) KernelContext_GetPreallocatedOutput(A B C)
            SessionOptionsSetEpContextDataReadFunc(A B C)
        }
        absent {
            ReleaseCustomOpDomain ReleaseMapTypeInfo ReleaseSequenceTypeInfo ReleaseArenaCfg
            ReleaseTensorRTProviderOptions ReleaseCUDAProviderOptions ReleaseOpAttr ReleaseOp
            ReleaseKernelInfo GetTrainingApi ReleaseCANNProviderOptions ReleaseDnnlProviderOptions
            ReleaseROCMProviderOptions ReleaseLoraAdapter ReleaseValueInfo ReleaseNode ReleaseGraph
            ReleaseModel GetModelEditorApi GetCompileApi CreateKeyValuePairs AddKeyValuePair GetKeyValue
            GetKeyValuePairs RemoveKeyValuePair ReleaseKeyValuePairs HardwareDevice_Type
            HardwareDevice_VendorId HardwareDevice_Vendor HardwareDevice_DeviceId HardwareDevice_Metadata
            EpDevice_EpName EpDevice_EpVendor EpDevice_EpMetadata EpDevice_EpOptions EpDevice_Device
            GetEpApi ReleaseExternalInitializerInfo ExternalInitializerInfo_GetFilePath
            ExternalInitializerInfo_GetFileOffset ExternalInitializerInfo_GetByteSize EpDevice_MemoryInfo
            SyncStream_GetHandle ReleaseSyncStream GetInteropApi ReleaseDeviceEpIncompatibilityDetails
            RunOptionsSetSyncStream GetExperimentalFunction GetModelPackageApi
        }
    }
}
