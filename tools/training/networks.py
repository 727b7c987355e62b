"""The networks that tools/training-report trains, and the gradients of those that it only exchanges."""

import torch


def digits_cnn():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(512, 10))


def lenet5():
    """LeCun et al. 1998, with all feature maps connected."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.Tanh(), torch.nn.AvgPool2d(2),
        torch.nn.Conv2d(6, 16, 5), torch.nn.Tanh(), torch.nn.AvgPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(400, 120), torch.nn.Tanh(), torch.nn.Linear(120, 84), torch.nn.Tanh(), torch.nn.Linear(84, 10))


def mlp():
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(784, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256), torch.nn.ReLU(),
        torch.nn.Linear(256, 10))


def digits_data():
    """1500 images of 8x8 pixels and their labels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return torch.tensor(digits.images[:1500], dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(digits.target[:1500])


def generated_data():
    """1800 images of 28x28 pixels in ten classes: a pattern of each class, and noise."""
    generator = torch.Generator().manual_seed(7)
    patterns = torch.randn(10, 1, 28, 28, generator=generator)
    labels = torch.randint(0, 10, (1800,), generator=generator)
    return patterns[labels] + 2 * torch.randn(1800, 1, 28, 28, generator=generator), labels


# Name: what it is, the network, the data. Each rank learns from 16 images in a step.
TRAINED = {
    "digits-cnn": ("a CNN of 10 thousand parameters on the digits of scikit-learn", digits_cnn, digits_data),
    "lenet5": ("LeNet-5, 62 thousand parameters, on generated images of 28x28 pixels", lenet5, generated_data),
    "mlp": ("a perceptron of 1.07 million parameters on the same images", mlp, generated_data),
}


# Parameters of a network in the order of the forward pass: (elements, multiply-adds of an image of 224x224 pixels).


def layer(elements, outputs, positions=1, extra=1):
    """A weight that is used at that many positions, and `extra` values for each output: a bias, or scale and shift."""
    return [(elements, elements * positions), *[(outputs, outputs * positions)] * extra]


def vgg19():
    """Simonyan and Zisserman 2014, configuration E."""
    parameters, before, side = [], 3, 224
    for group, channels in zip((2, 2, 4, 4, 4), (64, 128, 256, 512, 512)):
        for _ in range(group):
            parameters += layer(before * 9 * channels, channels, side * side)
            before = channels
        side //= 2
    for inputs, outputs in ((512 * 49, 4096), (4096, 4096), (4096, 1000)):
        parameters += layer(inputs * outputs, outputs)
    return parameters


def resnet50():
    """He et al. 2015: four groups of bottleneck blocks, each convolution with a batch normalisation."""
    parameters, before, side = layer(3 * 49 * 64, 64, 112 * 112, 2), 64, 56
    for group, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << group
        for block in range(blocks):
            inner = side if group == 0 or block > 0 else 2 * side  # the second convolution of a group's first block halves it
            parameters += layer(before * width, width, inner * inner, 2) + layer(width * 9 * width, width, side * side, 2)
            parameters += layer(width * 4 * width, 4 * width, side * side, 2)
            parameters += layer(before * 4 * width, 4 * width, side * side, 2) if block == 0 else []
            before = 4 * width
        side //= 2
    return parameters + layer(2048 * 1000, 1000)


# Only exchanged. Name: what it is, its parameters.
EXCHANGED = {"resnet50": ("ResNet-50, 25.6 million parameters", resnet50), "vgg19": ("VGG-19, 143.7 million parameters", vgg19)}


def buckets_of(parameters, first=1 << 20, others=25 << 20):
    """DistributedDataParallel's buckets in the order in which backward() fills them: (elements, share of the computation)."""
    total = sum(work for _, work in parameters)
    buckets, limit = [(0, 0)], first
    for elements, work in reversed(parameters):
        buckets[-1] = (buckets[-1][0] + elements, buckets[-1][1] + work / total)
        if 4 * buckets[-1][0] >= limit:
            buckets.append((0, 0))
            limit = others
    return [bucket for bucket in buckets if bucket[0] > 0]
