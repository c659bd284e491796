"""Descriptions of fields, as `kubectl explain` prints them, for the kinds that devlet is about.

Keys are message names without their version, because a field means the same in all versions of a group. The empty field
name stands for the message itself. Other fields simply have no description."""

from collections.abc import Mapping

__all__ = ["descriptions"]

_NOTHING: Mapping[str, str] = {}

_DESCRIPTIONS: dict[str, dict[str, str]] = {
    "resource.DeviceClass": {
        "": "A named set of devices that claims can request, and the configuration of such devices.",
        "metadata": "Standard metadata: the name, labels and fields that the server sets.",
        "spec": "Which devices belong to the class.",
    },
    "resource.DeviceClassSpec": {
        "selectors": "Conditions that a device must meet to belong to the class.",
        "config": "Parameters for the driver, applied before those of the claim.",
        "extendedResourceName": "The resource name under which pods can request devices of the class without a claim.",
    },
    "resource.DeviceSelector": {
        "": "A condition on a device.",
        "cel": "The condition as an expression.",
    },
    "resource.CELDeviceSelector": {
        "expression": "A CEL expression over `device` (driver, attributes, capacity) that returns true or false.",
    },
    "resource.ResourceSlice": {
        "": "Devices that a driver offers, as one part of a pool.",
        "metadata": "Standard metadata: the name, labels and fields that the server sets.",
        "spec": "The devices, and the nodes that can use them.",
    },
    "resource.ResourceSliceSpec": {
        "driver": "The driver that published the slice and prepares its devices. Immutable.",
        "pool": "The pool that the slice is part of.",
        "nodeName": "The only node that can use the devices. Immutable.",
        "nodeSelector": "The nodes that can use the devices.",
        "allNodes": "True if every node can use the devices.",
        "perDeviceNodeSelection": "True if each device names the nodes that can use it.",
        "devices": "The devices, each with a name that is unique in the pool.",
        "sharedCounters": "Amounts that devices of the pool share, for hardware that can be partitioned in many ways.",
    },
    "resource.ResourcePool": {
        "name": "The name of the pool, usually the node's name for devices of one node.",
        "generation": "Increased whenever the pool changes. Slices of older generations are ignored.",
        "resourceSliceCount": "The number of slices of this generation. Until all exist, the pool is incomplete.",
    },
    "resource.Device": {
        "": "A device that can be allocated.",
        "name": "The name of the device: a DNS label, unique in the pool.",
        "attributes": "Properties of the device, by name. A name without a domain belongs to the driver.",
        "capacity": "Amounts that the device has, by name.",
        "consumesCounters": "The amounts that the device takes from the pool's shared counters.",
        "nodeName": "The only node that can use the device.",
        "nodeSelector": "The nodes that can use the device.",
        "allNodes": "True if every node can use the device.",
        "taints": "Reasons not to allocate the device, or to stop using it.",
        "bindsToNode": "True if allocating the device binds the claim to the chosen node.",
        "bindingConditions": "Conditions that must become true before a pod with the device is bound.",
        "bindingFailureConditions": "Conditions of which any one means that the device will not become ready.",
        "allowMultipleAllocations": "True if several claims can use the device at the same time.",
        "basic": "The properties of the device.",
    },
    "resource.DeviceAttribute": {
        "": "A value of one of four types.",
        "bool": "A boolean.",
        "int": "An integer.",
        "string": "A string of at most 64 characters.",
        "version": "A semantic version (semver.org).",
    },
    "resource.DeviceTaint": {
        "": "Keeps claims without a matching toleration away from a device.",
        "key": "The name of the taint.",
        "value": "The value of the taint. May be empty.",
        "effect": "NoSchedule: no new allocations. NoExecute: pods that use it are deleted as well. None: no effect.",
        "timeAdded": "When the taint was set. Tolerations may expire some time later.",
    },
    "resource.ResourceClaim": {
        "": "A request for devices and, once allocated, the devices.",
        "metadata": "Standard metadata: the name, labels and fields that the server sets.",
        "spec": "The requested devices. Immutable.",
        "status": "The allocated devices, the pods that may use them, and reports of the drivers.",
    },
    "resource.ResourceClaimSpec": {
        "devices": "The requested devices.",
    },
    "resource.DeviceClaim": {
        "requests": "The requests. All of them must be satisfied together.",
        "constraints": "Conditions on the devices of several requests.",
        "config": "Parameters for drivers.",
    },
    "resource.DeviceRequest": {
        "": "A request for devices of one kind.",
        "name": "The name by which constraints, configuration and containers refer to the request.",
        "exactly": "The requested devices, without alternatives.",
        "firstAvailable": "Alternatives in order of preference. The first that can be satisfied is used.",
        "deviceClassName": "The class of the devices.",
        "selectors": "Conditions that a device must meet in addition to those of the class.",
        "allocationMode": "ExactCount requests a number of devices, All requests every matching device.",
        "count": "The number of devices, for mode ExactCount.",
        "adminAccess": "True for access to devices that others use. Only allowed in namespaces with a label for it.",
        "tolerations": "The taints that this request tolerates.",
        "capacity": "The amount that is needed of each device, for shared devices.",
    },
    "resource.ExactDeviceRequest": {
        "deviceClassName": "The class of the devices.",
        "selectors": "Conditions that a device must meet in addition to those of the class.",
        "allocationMode": "ExactCount requests a number of devices, All requests every matching device.",
        "count": "The number of devices, for mode ExactCount.",
        "adminAccess": "True for access to devices that others use. Only allowed in namespaces with a label for it.",
        "tolerations": "The taints that this request tolerates.",
        "capacity": "The amount that is needed of each device, for shared devices.",
    },
    "resource.DeviceConstraint": {
        "requests": "The requests whose devices are compared. Empty means all requests.",
        "matchAttribute": "All devices must have this attribute, with the same value.",
        "distinctAttribute": "All devices must have this attribute, each with a different value.",
    },
    "resource.ResourceClaimStatus": {
        "allocation": "The allocated devices. Absent until the claim is allocated.",
        "reservedFor": "The pods that may use the claim. The devices stay allocated while there are any.",
        "devices": "Reports of the drivers about each device.",
    },
    "resource.AllocationResult": {
        "devices": "The devices and their parameters.",
        "nodeSelector": "The nodes that can use all of the devices. Absent means every node.",
        "allocationTimestamp": "When the devices were allocated.",
    },
    "resource.DeviceRequestAllocationResult": {
        "": "One allocated device.",
        "request": "The request that the device satisfies, as REQUEST or REQUEST/ALTERNATIVE.",
        "driver": "The driver of the device.",
        "pool": "The pool of the device.",
        "device": "The name of the device in its pool.",
        "adminAccess": "True if the claim has administrative access to the device.",
        "shareID": "Identifies one share of a device that several claims use.",
        "consumedCapacity": "The amount of a shared device that the claim uses.",
    },
    "resource.ResourceClaimConsumerReference": {
        "resource": "The resource of the consumer, such as pods.",
        "name": "The name of the consumer, in the claim's namespace.",
        "uid": "The UID of the consumer, which distinguishes it from later objects of the same name.",
    },
    "resource.AllocatedDeviceStatus": {
        "conditions": "The state of the device as reported by the driver.",
        "data": "Additional data from the driver.",
        "networkData": "Addresses, for devices that are network interfaces.",
    },
    "resource.ResourceClaimTemplate": {
        "": "A template from which a claim is created for each pod that refers to it.",
        "spec": "The claim to create. Immutable.",
    },
    "resource.DeviceTaintRule": {
        "": "Adds a taint to devices, independently of their driver.",
        "spec": "The devices, and the taint.",
        "status": "The progress of the taint's effect.",
    },
    "resource.DeviceTaintRuleSpec": {
        "deviceSelector": "Selects the devices. All conditions that are set must hold.",
        "taint": "The taint that the devices get.",
    },
    "resource.ResourcePoolStatusRequest": {
        "": "Requests how many devices pools have and how many are free. The status gets the answer once.",
    },
    "core.Pod": {
        "": "Containers that run together on one node.",
        "metadata": "Standard metadata: the name, labels and fields that the server sets.",
        "spec": "What the pod runs, and where.",
        "status": "The observed state of the pod.",
    },
    "core.PodSpec": {
        "resourceClaims": "The claims that the containers can refer to. They are allocated before the pod is bound.",
        "nodeName": "The node on which the pod runs. Empty until the pod is bound.",
        "schedulerName": "The scheduler that chooses the node.",
        "containers": "The containers. At least one is required.",
        "initContainers": "Containers that run one after the other before the others start.",
        "restartPolicy": "Whether containers are restarted after they have ended: Always, OnFailure or Never.",
    },
    "core.PodResourceClaim": {
        "": "A claim of a pod: an existing claim, or one that is created from a template for this pod.",
        "name": "The name by which containers refer to this entry.",
        "resourceClaimName": "A claim in the pod's namespace, which other pods may use as well.",
        "resourceClaimTemplateName": "A template in the pod's namespace. Its claim exists as long as the pod.",
    },
    "core.PodStatus": {
        "phase": "Pending, Running, Succeeded, Failed or Unknown.",
        "resourceClaimStatuses": "The claims that were created from templates.",
    },
    "core.Container": {
        "name": "The name of the container: a DNS label, unique in the pod.",
        "image": "The image of the container.",
        "resources": "The resources that the container needs, including claims.",
    },
    "core.ResourceRequirements": {
        "limits": "The maximum amount that the container may use, by resource.",
        "requests": "The minimum amount that the container needs, by resource.",
        "claims": "The pod's claims whose devices the container gets. It does not see other claims.",
    },
    "core.ResourceClaim": {
        "": "A container's reference to a claim of its pod.",
        "name": "The name of an entry in the pod's resourceClaims.",
        "request": "One request of the claim. Without it, the container gets the devices of all requests.",
    },
    "core.ConfigMap": {
        "": "Configuration data for containers and programs.",
        "data": "Strings, by key.",
        "binaryData": "Binary data, by key.",
        "immutable": "True if the data can no longer be changed.",
    },
    "core.Node": {
        "": "A machine that runs pods.",
        "spec": "The desired state of the node.",
        "status": "The state that the node reports.",
    },
    "core.NodeStatus": {
        "capacity": "The total amount of each resource.",
        "allocatable": "The amount of each resource that is available to pods.",
        "conditions": "The conditions of the node. Ready says whether it accepts pods.",
    },
    "coordination.Lease": {
        "": "A lock with a holder, valid as long as it is renewed.",
        "spec": "The holder, the time of acquisition and renewal, and the duration.",
    },
}


def descriptions(message_name: str) -> Mapping[str, str]:
    """Return the descriptions of a message such as `k8s.io.api.core.v1.Pod`, by field."""
    group, _, rest = message_name.removeprefix("k8s.io.api.").partition(".")
    return _DESCRIPTIONS.get(f"{group}.{rest.rpartition('.')[2]}", _NOTHING)
